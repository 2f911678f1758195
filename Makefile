SHELL := bash
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod))

.PHONY: help test check lint exclusion bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## Install redis-server if it is missing, then run every test with the race detector
	@hack/install.sh gcc || [ "$$CI" != true ] # for the race detector
	@hack/install.sh redis-server || { [ "$$CI" != true ] && echo "tests that need redis-server are skipped"; }
	@for m in $(MODULES); do (set -x; go test -C $$m -race -timeout 15m ./...) || exit 1; done

check: ## Check format, go vet, what rlock links, and that go.mod is tidy
	@files=$$(gofmt -l .) && [ -z "$$files" ] || { echo "gofmt would change:" $$files; exit 1; }
	hack/check-links.sh
	@for m in $(MODULES); do (set -x; go vet -C $$m ./... && go mod tidy -C $$m -diff) || exit 1; done

lint: ## Run golangci-lint, if you have it
	@for m in $(MODULES); do (set -x; cd $$m && golangci-lint run ./...) || exit 1; done

exclusion: ## Hunt for two holders at once for longer than the tests do: make exclusion TIME=10m
	@hack/install.sh redis-server
	EXCLUSION_TIME=$(or $(TIME),5m) go test -race -v -timeout 24h -run Exclusion ./rlock

bench: ## Measure beside the bare scripts and other libraries, and print a table of ratios
	@hack/install.sh redis-server
	cd bench && go run . $(ARGS)
