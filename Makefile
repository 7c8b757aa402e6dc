# orderonce: every task that people and CI run. `make` lists them.

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT  := go run mvdan.cc/gofumpt@v0.12.0
SYSTEMS  := linux darwin
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0
GOTESTSUM := go run gotest.tools/gotestsum@v1.13.0
GREMLINS := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
STRIPE_MOCK_VERSION := v0.203.0
STRIPE_MOCK := $(CURDIR)/build/stripe-mock-$(STRIPE_MOCK_VERSION)
ENGINE   := adapters/dynamodb/dynamodbtest/engine
FUZZTIME ?= 10s
# These tests take minutes, so make test-long runs them and make test does not.
LONG     := TestEveryMissingGuardIsCaught|TestAGuardIsRemovedAfterTheModuleWasRenamed|TestPairs|TestManyOrdersAreAuditedInLittleMemory|TestManyHistoriesAreVerifiedInLittleMemory|TestLargerStorms|TestRefundsUnderFaults|TestTheStormFindsTheKnownFailures
MODULES  := . scripts scripts/lab
LAB      := go -C scripts/lab run
# Compiles a program of scripts and runs it in the root.
program   = go -C scripts build -o $(CURDIR)/build/tools/$(1) ./$(1) && build/tools/$(1)
TERRAFORM := terraform -chdir=infra/terraform
OPENTOFU  := 1.12.6
TOFU      := build/tofu-$(OPENTOFU)

# The flags of a release (lambdatest.Program), so that tests, tools and functions share each compiled package.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null)) -trimpath
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help run new new-job projects parts upgrade up drill break prove prove-refunds prove-effects prove-long proof-page refund-page storm storm-page learn conform conform-clean conform-contracts conform-page conform-dynalite spec grow grow-page storm-node test test-long race browser screenshots mutate lint fuzz build package notes bench bench-page bench-quick stripe-mock tf tofu environment deploy orders smoke destroy engine clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# go build names each package that it has compiled. A terminal shows how many; a pipe, every fiftieth.
define compile
	@echo 'Compiling (first time: 1 to 3 minutes)'
	@[ -t 1 ] && terminal=1; { go -C $(1) build -v $(2) 2>&1; echo "status $$?"; } | \
	  awk -v terminal=$$terminal '/^status [0-9]+$$/ { status = $$2; next } \
	    /^[A-Za-z0-9_.\/~-]+$$/ { n++; if (terminal) printf "\r%d packages", n; else if (n % 50 == 0) print n " packages"; fflush(); next } \
	    { print } END { if (n && terminal) printf "\r\033[K"; exit status }'
endef

run: engine ## the whole system on this machine: post orders, kill the function, check the invariants
	$(call compile,scripts,-o $(CURDIR)/build/run/local ./local)
	@build/run/local run

new: ## a project of your own from this clone: make new MODULE=github.com/acme/shop DIR=../shop PARTS=charge,refund
	@$(call program,take) new $(if $(MODULE),--module='$(MODULE)') $(if $(DIR),--dir='$(DIR)') $(if $(PARTS),--parts='$(PARTS)')

projects: ## make three projects with make new, and run lint, build, tests, run and tf in each; PARTS=charge: that one
	@scripts/take/projects.sh $(PARTS)

parts: ## make, run and test a project of each part alone, and of everything without it, and compare their lines with docs/parts.md; two hours
	@$(call program,take) check --make-run

upgrade: ## merge a later version of its origin into a project: make upgrade FROM=path-or-URL
	@test -n '$(FROM)' || { echo 'say where the later version is: make upgrade FROM=path-or-URL'; exit 1; }
	@rm -rf build/from && git clone -q '$(FROM)' build/from && \
	  go -C build/from/scripts run ./take upgrade --project='$(CURDIR)' $(if $(PARTS),--parts='$(PARTS)')

up: engine ## the same system with a live page: post orders, attack it, take a guard away
	$(call compile,scripts,-o $(CURDIR)/build/up/ ./local ./orders)
	@build/up/local up

drill: engine ## practice an incident of docs/guides/runbooks.md: make drill RUNBOOK=5; without it, list them
	$(call compile,scripts,-o $(CURDIR)/build/drill/$(RUNBOOK)/ ./local ./orders)
	@build/drill/$(RUNBOOK)/local drill $(RUNBOOK)

break: ## remove a guard and see what catches it: make break GUARD=bind
	@$(LAB) ./guards/break $(GUARD)

prove: ## every schedule of two faults, a million random worlds of orders, prove-refunds and prove-effects; six minutes on two cores
	@$(LAB) ./prove

prove-refunds: ## every schedule of two faults of refunds, 40,000 random worlds; 60 seconds
	@$(LAB) ./prove refunds

prove-effects: ## every schedule of four deviations of requests by HTTP and of receipts, of three of stock; two minutes
	@$(LAB) ./prove effects

prove-long: ## three faults and a hundred million worlds; hours, and resumable
	@mkdir -p build && $(LAB) ./prove orders --long --resume ../../build/prove.state

proof-page: refund-page ## the same as make prove, and docs/reference/proof.md and refund-proof.md
	@$(LAB) ./prove orders --page ../../docs/reference/proof.md

refund-page: ## the same as make prove-refunds, and docs/reference/refund-proof.md
	@$(LAB) ./prove refunds --page ../../docs/reference/refund-proof.md

storm: engine $(if $(ORDERS)$(WITHOUT),,storm-node) ## real binaries under kills and outages, beside the baselines; ORDERS=100000 or WITHOUT=bind: the product alone
	@$(LAB) ./storm $(if $(ORDERS)$(WITHOUT),--baselines=0) $(if $(ORDERS),--orders=$(ORDERS)) \
	  $(if $(WITHOUT),--without=$(WITHOUT)) $(STORM)

storm-page: engine storm-node ## the same as make storm, and docs/reference/storm.md with its chart
	@$(LAB) ./storm --docs=../../docs $(STORM)

learn: ## from the handler that charges twice to the product's protocol, in seven steps; STEP=3: that one
	@go run ./examples/steps $(if $(STEP),-step=$(STEP))

conform: engine ## check the rules that the doubles obey: SERVICE=sqs; ENDPOINT=live: at the real services; docs/guides/conform.md
	@$(call program,conform) check $(SERVICE) $(if $(ENDPOINT),--endpoint='$(ENDPOINT)') $(CONFORM)

conform-clean: ## list what killed runs of make conform have left in the AWS account, ask, and remove it
	@$(call program,conform) clean $(CONFORM)

conform-contracts: ## run the contracts of payments, refunds and store at ENDPOINT=live: Stripe in test mode and DynamoDB
	@test '$(ENDPOINT)' = live || { echo 'make test runs them at the doubles; want ENDPOINT=live'; exit 1; }
	@go -C scripts test -count=1 -v -timeout=2h -run '^TestContract' ./conform
	@DYNAMODB_ENDPOINT=https://dynamodb.$(AWS_REGION).amazonaws.com go test -count=1 -v -timeout=2h \
	  -run '^(TestStore|TestReceipts|TestRefunds|TestRegistrations|TestStock|TestWaiting)$$' ./adapters/dynamodb

conform-page: ## print docs/reference/conformance.md anew; REPORT=build/conform/sqs-live.json: with that report
	@$(call program,conform) page $(if $(REPORT),--add='$(REPORT)') >build/conformance.md && mv build/conformance.md docs/reference/

grow: ## simulate 25 to 100,000 orders a second, and which limit is reached first; ten seconds: docs/guides/grow.md
	@$(LAB) ./grow

grow-page: ## the same as make grow, and docs/guides/grow.md with its chart
	@$(LAB) ./grow --docs=../../docs

storm-node: scripts/lab/storm/node/node_modules ## install what the storm runs on Node.js: Powertools, durable functions, Restate (needs npm; 290 MB)

conform-dynalite: scripts/conform/dynalite/node_modules ## check the rules of DynamoDB at dynalite, an emulator that others wrote (needs npm)
	go -C scripts test -count=1 -run='^TestDynalite' -v ./conform

spec: scripts/lab/spec/node_modules ## simulate the charge protocol's specification, and without each of its guards: docs/spec; GUARD=bind prints a history (needs npm)
	@node scripts/lab/spec/check.js $(GUARD)

scripts/%/node_modules: scripts/%/package-lock.json
	@command -v npm >/dev/null || { echo 'no npm: install Node.js 22 with npm (https://nodejs.org)'; exit 1; }
	npm ci --ignore-scripts --no-audit --no-fund --prefix $(@D) && touch $@

# A test that skips itself shows nothing, so a skip fails the target.
define no-skips
	if grep -h '"Action":"skip","Package":"[^"]*","Test"' build/test-*.json; then echo 'these tests were skipped'; exit 1; fi
endef

# Runs the modules side by side, because tests of processes wait more than they compute. The
# packages of $$module are the last argument. The test cache of scripts and of the lab does not
# see the product's files: -count=1. make lint runs go vet, in golangci-lint.
define run-tests
	@mkdir -p build; rm -f build/test-*.json build/failed; for module in $(MODULES); do \
	  (cd $$module && $(GOTESTSUM) --format=$(1) \
	    --jsonfile=$(CURDIR)/build/test-$$(basename $$PWD).json -- -count=1 -vet=off -timeout=30m $(2) $(3) || \
	    echo $$module >>$(CURDIR)/build/failed) & done; wait; \
	test ! -s build/failed || { echo "tests failed in:" $$(cat build/failed); exit 1; }
endef

# One test after the other: each starts a browser and a whole system, and presses buttons as fast as a person could.
define run-browser
	@mkdir -p build; rm -f build/test-*.json; (cd scripts/lab && ORDERONCE_ALL=1 $(2) $(GOTESTSUM) --format=testname \
	  --jsonfile=$(CURDIR)/build/test-browser.json -- -count=1 -timeout=60m -parallel=1 -run='^TestInABrowser$(1)' ./browser) && { $(no-skips); }
endef

OTHERS := TestInABrowser.*
# TestAnUpgradeUnderWay compiles an earlier release from git's history. An archive and a shallow clone have none.
EARLIER = $(shell sed -n 's/^const earlier = "\(.*\)"/\1/p' scripts/local/system/upgrade_test.go)
OTHERS := $(OTHERS)$(shell git cat-file -e $(EARLIER)^{commit} 2>/dev/null || echo '|TestAnUpgradeUnderWay')

# One world after the other, which the race detector makes ten times slower. TestAnInterruptedRunContinues
# runs the workers of a search.
SEARCHES := TestScenario|TestWorlds|TestASearch.*|TestTheStripeAdapterBehaves.*|TestEveryKindOfTroubleHappens|TestRandomWorlds.*|TestEverySchedule.*|TestTheBaselines.*|TestTheProductKeeps.*|TestTheUsualCode.*|TestThePageShowsTheSimulation|TestAWallLetsThrough.*

test race stripe-mock: export STRIPE_MOCK := $(STRIPE_MOCK)

test: export ORDERONCE_ALL = 1
test: engine $(STRIPE_MOCK) scripts/conform/dynalite/node_modules scripts/lab/spec/node_modules ## every test of the three modules that takes less than a minute, with the engine; a skipped test is a failure
	$(call compile,.,./...)
	$(call compile,scripts,./...)
	$(call compile,scripts/lab,./...)
	$(call run-tests,pkgname,-skip='^($(OTHERS)|$(LONG))$$',./...)
	@$(no-skips)
	@case '$(OTHERS)' in *TestAnUpgradeUnderWay) echo 'TestAnUpgradeUnderWay did not run: git does not have the earlier release';; esac

test-long: export ORDERONCE_ALL = 1
test-long: export ORDERONCE_WORLDS ?= 20000
test-long: engine storm-node ## what make test leaves out: every planted bug, long searches, large storms
	$(call run-tests,testname,-run='^($(LONG)|TestWorlds)$$',$$(go list -f '{{.Dir}}' ./... | \
	  while read -r dir; do ! grep -qsE '^func ($(LONG))[^[:alnum:]]' "$$dir"/*_test.go || echo "$$dir"; done))
	@$(no-skips)

# Under the race detector run the product, and of the tools those packages that start goroutines or share memory.
RACING = $$(go list -f '{{.Dir}}' ./... | while read -r dir; do \
  [ $$dir = $(CURDIR) ] || { [ $$module != . ] && ! grep -qsE '\bgo func|\.Go\(|"sync|httptest\.New' "$$dir"/*.go; } || echo "$$dir"; done)

# Tests of other processes, whose code the detector does not see, skip themselves without ORDERONCE_ALL.
race: export CGO_ENABLED = 1
race: engine $(STRIPE_MOCK) ## the tests of what runs in one process under the race detector; needs a C compiler
	@command -v $${CC:-cc} >/dev/null || { echo 'make race needs a C compiler: install gcc or clang, or set CC'; exit 1; }
	$(call run-tests,pkgname,-race -skip='^($(OTHERS)|$(SEARCHES)|$(LONG))$$',$(RACING))

browser: engine ## press every button of the live page in headless Chromium; STORM_SECONDS=600 for a long storm
	$(call run-browser)

screenshots: engine ## take the pictures of the live page in docs/images, in headless Chromium
	@mkdir -p docs/images
	$(call run-browser,ThePictures,SCREENSHOTS=$(CURDIR)/docs/images)

mutate: engine ## change the code in one place at a time, and name the changes that no test notices: an hour; PACKAGES=./domain/order
	@$(LAB) ./mutate --gremlins=$(GREMLINS) $(PACKAGES)

lint: ## formatting, golangci-lint with go vet and the import rules, go.mod, dead code and types on Linux and macOS
	@test -z "$$($(GOFUMPT) -l .)" || { echo 'not formatted, run gofumpt -w on:'; $(GOFUMPT) -l .; exit 1; }
	@for module in $(MODULES); do (set -x && go -C $$module mod tidy -diff) || exit 1; done
	@mkdir -p build && rm -f build/go.work && GOWORK=$$PWD/build/go.work go work init $(MODULES)
	@for tool in $(GOLANGCI) $(DEADCODE); do GOBIN=$(CURDIR)/build/tools go install $$tool || exit 1; done
	@set -x; GOWORK=$$PWD/build/go.work build/tools/golangci-lint run --allow-parallel-runners $(MODULES:%=./%/...)
	@for system in $(SYSTEMS); do \
	  dead=$$(GOOS=$$system GOARCH=arm64 GOWORK=$$PWD/build/go.work build/tools/deadcode -test $(MODULES:%=./%/...)) && \
	  test -z "$$dead" || { echo "$$system: $$dead"; exit 1; }; done

new-job: ## write a job of your own into this project: make new-job KIND=a NAME=label; docs/guides/adapt.md
	@$(call program,newjob) "$(KIND)" "$(NAME)"

fuzz: ## every fuzz target for FUZZTIME (10s)
	@for module in $(MODULES); do cd $(CURDIR)/$$module; for package in $$(go list ./...); do for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	  echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$package || exit 1; done; done; done

build: ## compile every function for this machine, into build/
	@$(call program,package) build

package: ## zip every function for Lambda (linux/arm64; GOARCH=amd64 for x86), into build/package
	@unset GOARCH && $(call program,package) zip --arch=$(or $(GOARCH),arm64)

notes: ## what CHANGELOG.md says about a release, if the source is that release: make notes TAG=v0.1.0
	@$(call program,package) notes --links="$$LINKS" "$$TAG"

# BASE=v1.0.0 compares with that revision; without it, with the last tag, or with the last commit if there is none.
bench bench-quick: BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || echo HEAD)
bench: ## the order function beside BASE, plain Go, the floor and Powertools, near and far, whole and with Lambda's share of a CPU; 10 min
	@$(LAB) ./bench $(BASE)

bench-quick: ## cold start, CPU, orders a second and memory of the order function, beside those of BASE; 2 min
	@$(LAB) ./bench --quick $(BASE)

bench-page: engine storm-node ## make bench without BASE, the other functions, bursts and growth, and docs/reference/performance.md; 20 min
	@$(LAB) ./bench --docs=../../docs

stripe-mock: $(STRIPE_MOCK) ## send every request of the Stripe adapter to stripe-mock
	go test -count=1 -run='^TestStripeMockAcceptsEveryRequest$$' -v ./adapters/stripe

$(STRIPE_MOCK):
	@mkdir -p build && GOBIN=$(CURDIR)/build go install github.com/stripe/stripe-mock@$(STRIPE_MOCK_VERSION) && \
	  mv build/stripe-mock $@

tf: ## format, lint, validate and test the Terraform module, its root and its example, without an AWS account
	@infra/check.sh $$([ ! -x $(TOFU) ] || echo $(TOFU))

tofu: $(TOFU) ## build OpenTofu once (minutes), so that make tf tests with it too

# `go install MODULE@VERSION` rejects a go.mod with a replace directive, so build OpenTofu in
# the module cache.
$(TOFU):
	@mkdir -p build && out="$$PWD/$@" && cd "$$(go mod download -json github.com/opentofu/opentofu@v$(OPENTOFU) | \
	  sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" && CGO_ENABLED=0 go build -trimpath \
	  -ldflags '-s -w -X github.com/opentofu/opentofu/version.dev=no' -o "$$out" ./cmd/tofu

# ENV=prod takes the state and the variables of infra/terraform/environments/prod.*: docs/guides/deploy.md#environments.
INIT   = $(TERRAFORM) init -input=false $(if $(ENV),-reconfigure -backend-config=environments/$(ENV).s3.tfbackend)
VALUES = $(if $(ENV),-var-file=environments/$(ENV).tfvars)
DEPLOYED = build/deploy/$(if $(ENV),$(ENV).)env

# A remote state without ENV would be the one that was used last, and ENV without a remote state the one beside the module.
environment:
	@if [ -n "$(ENV)" ] && [ ! -f infra/terraform/backend.tf ]; then \
	  echo 'ENV needs a remote state: cp infra/terraform/backend.tf.example infra/terraform/backend.tf'; exit 1; fi
	@if [ -z "$(ENV)" ] && [ -f infra/terraform/backend.tf ]; then \
	  echo 'infra/terraform/backend.tf is a remote state: say whose, for example ENV=prod'; exit 1; fi

deploy: environment ## apply infra/terraform to your AWS account; ENV=prod: docs/guides/deploy.md
	@$(call program,orders) check
	@$(MAKE) --no-print-directory package
	@$(INIT)
	@TF_VAR_stripe_secret_key="$$STRIPE_SECRET_KEY" $(TERRAFORM) apply $(VALUES)
	@mkdir -p build/deploy && $(TERRAFORM) output -raw operator_environment >$(DEPLOYED) && cat $(DEPLOYED)
	@echo 'These lines are in $(DEPLOYED). Next: make smoke$(if $(ENV), ENV=$(ENV))'

orders: ## install the operator's tool in $(go env GOPATH)/bin; its --version names version and commit
	@go -C scripts install ./orders

smoke: ## send orders through everything that is deployed, in Stripe's test mode, and remove what can be removed; ENV=prod
	@if [ -n "$(ENV)" ] || { [ -z "$$QUEUE_URL" ] && [ -f $(DEPLOYED) ]; }; then . ./$(DEPLOYED); fi && $(call program,orders) smoke

destroy: environment ## destroy the deployment, with the rows that keep an order from being charged twice; ENV=prod
	@$(INIT) >/dev/null
	@if $(TERRAFORM) state show module.orderonce.aws_dynamodb_table.orders 2>/dev/null | grep -q 'deletion_protection_enabled *= *true'; then \
	  echo 'The orders table is protected: its rows are what keeps an order from being charged twice. If you mean it:'; \
	  echo '  terraform -chdir=infra/terraform apply $(VALUES) -var deletion_protection=false && make destroy $(if $(ENV),ENV=$(ENV))'; \
	  exit 1; fi
	@$(TERRAFORM) destroy $(VALUES) && rm -f $(DEPLOYED)

engine: $(ENGINE)/node_modules ## install the pinned DynamoDB-compatible engine (needs npm)

# Nothing to install where DYNAMODB_ENDPOINT names an engine or dynoxide is on PATH.
$(ENGINE)/node_modules: $(ENGINE)/package-lock.json
	@if [ -n "$$DYNAMODB_ENDPOINT" ] || command -v dynoxide >/dev/null; then exit 0; fi; \
	why=; [ "$$(uname -sm)" = 'Linux x86_64' ] || why='the pinned engine is for Linux x64, and this is another system'; \
	command -v npm >/dev/null || why='no npm to install the engine with'; \
	[ -z "$$why" ] || { echo "$$why. Put dynoxide on PATH (https://github.com/nubo-db/dynoxide), or start an engine yourself:"; \
	echo '  docker run -d -p 127.0.0.1:8000:8000 amazon/dynamodb-local && export DYNAMODB_ENDPOINT=http://127.0.0.1:8000'; exit 1; }; \
	npm ci --ignore-scripts --no-audit --no-fund --prefix $(ENGINE) && touch $@

clean: ## remove what builds and runs left behind
	rm -rf build $(ENGINE)/node_modules
	rm -rf scripts/conform/dynalite/node_modules scripts/lab/spec/node_modules scripts/lab/storm/node/node_modules
