SHELL := bash
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod))

.PHONY: help test check lint exclusion chaos quorum model bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## Install redis-server and faketime if they are missing, then run every test with the race detector
	@hack/install.sh gcc || [ "$$CI" != true ] # for the race detector
	@hack/install.sh redis-server || { [ "$$CI" != true ] && echo "tests that need redis-server are skipped"; }
	@hack/install.sh faketime || { [ "$$CI" != true ] && echo "tests that need libfaketime are skipped"; }
	@# One package after the other: campaigns count what they get done.
	@for m in $(MODULES); do (set -x; go test -C $$m -race -p 1 -timeout 15m ./...) || exit 1; done
	go test -p 1 -run Model ./fair ./multilock # all of it, for which the race detector is too slow

check: ## Check format, go vet, what the doors link, and that go.mod is tidy
	@files=$$(gofmt -l .) && [ -z "$$files" ] || { echo "gofmt would change:" $$files; exit 1; }
	hack/check-links.sh
	@for m in $(MODULES); do (set -x; go vet -C $$m ./... && go mod tidy -C $$m -diff) || exit 1; done

lint: ## Run golangci-lint, if you have it
	@for m in $(MODULES); do (set -x; cd $$m && golangci-lint run ./...) || exit 1; done

exclusion: ## Hunt for two holders at once for longer than the tests do: make exclusion TIME=10m
	@hack/install.sh redis-server
	EXCLUSION_TIME=$(or $(TIME),5m) go test -race -v -timeout 24h -p 1 -run Exclusion ./rlock ./fair

chaos: ## Hunt for two holders on a quorum of nodes that fail, for longer than the tests do: make chaos TIME=30m
	@hack/install.sh redis-server
	@hack/install.sh faketime
	CHAOS_TIME=$(or $(TIME),30m) go test -v -timeout 24h -run Chaos ./multilock

quorum: ## Run the conformance suite and the faults on 3 and 5 nodes, which count on a machine that is quick
	@hack/install.sh redis-server
	@hack/install.sh faketime
	QUORUM=all go test -v -timeout 1h -run 'TestConformance[35]|TestFaults3' ./multilock

model: ## Explore the protocols of the fair lock and of the quorum further than the tests do, for about 15 minutes each
	MODEL=long go test -v -timeout 2h -p 1 -run 'TestG1_.*Model' ./fair ./multilock

bench: ## Measure beside the bare scripts and other libraries, and print a table of ratios
	@hack/install.sh redis-server
	cd bench && go run . $(ARGS)
