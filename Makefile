# `make` alone lists the targets. Everything that is downloaded or built along
# the way lands in bin/ and .cache/.

STATICCHECK_VERSION := v0.8.2
GOFUMPT_VERSION     := v0.12.0
FUZZTIME            ?= 1m

VERSION     := $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo dev)
TOOLS       := $(CURDIR)/.cache/bin
STATICCHECK := $(TOOLS)/staticcheck-$(STATICCHECK_VERSION)
GOFUMPT     := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)

# Hand-written Go files, wherever they are; what npm brings along is ignored.
GO_FILES = git ls-files -z --cached --others --exclude-standard -- '*.go' ':!*.gen.go' | xargs -0 ls -d 2>/dev/null

# SQLite translated to Go is some thirty times slower under the race detector.
# It is our own code the detector is to watch, so that package goes without.
RACE := -race -gcflags='modernc.org/...=-race=false'

# What has no goroutines, or starts the program as processes of their own, where
# nobody would hear of a race.
WITHOUT_RACES := /(api|docs|web|tools|deploy)(/|$$)|/internal/(domain|ai/reader|arch)(/|$$)|/cmd/millrace$$

SERVICES := scripts/with-postgres scripts/with-stripe scripts/with-s3 scripts/with-oidc scripts/with-slurm scripts/with-uv scripts/with-rocrate

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run demo dev web shim attempt build uv image packages release test-deploy web-check browser picture contract test test-all go-tests unraced client-tests deployments race test-engines test-same test-nextflow test-python test-mcp test-ldap attack chaos check verify gen bench load fmt fuzz clean setup-run setup-test format vet lint tidy

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: setup-run uv build ## Start the server with its embedded defaults; it prints its address
	bin/millrace serve

demo: setup-run uv build ## Start a server with data and a run in which one of 200 samples fails (docs/demo.md)
	scripts/demo

dev: setup-run uv ## Start the server and restart it whenever a source file changes
	scripts/dev

SHIM := internal/engine/executor/shim

# The web app: built again when something under web/ or examples/ has changed.
WEB_SOURCES = $(shell find web examples \( -name node_modules -o -name dist \) -prune -o -type f -print 2>/dev/null)

web: web/dist/manifest.json ## Build the web app into web/dist

# An npm older than 11 stumbles over what newer packages may leave out.
web/node_modules/.installed: web/package.json web/package-lock.json
	npm ci --prefix web --no-audit --no-fund --loglevel=error || npx --yes npm@11 ci --prefix web --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/manifest.json: web/node_modules/.installed $(WEB_SOURCES)
	npm run --prefix web --silent build

# The program beside tasks. Without it the server serves as its own, which is
# slower to start, in the tests much slower.
shim:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/millrace-shim ./$(SHIM)/cmd/millrace-shim
	go run ./tools/compress bin/millrace-shim $(SHIM)/embedded/packed/millrace-shim.zst

# The program beside tasks on Kubernetes, for an image of its own.
attempt:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/millrace-attempt ./$(SHIM)/cmd/millrace-attempt

# Bytes that the program may have, see docs/decisions/0107-a-small-program.md.
MOST_BYTES := 68000000

build: web shim attempt ## Build bin/millrace, the web app inside, and bin/millrace-attempt
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/millrace ./cmd/millrace
	@size=$$(wc -c <bin/millrace); if [ "$$size" -gt $(MOST_BYTES) ]; then \
		echo "bin/millrace has $$size bytes and may have $(MOST_BYTES): docs/decisions/0107-a-small-program.md says how to find what is large"; exit 1; fi

# Beside the program, where it finds it. Without it there are no environments of packages, and all else works.
uv:
	@scripts/fetch-uv $$(go env GOARCH) bin/uv || echo "uv could not be fetched: steps that need packages are refused until it is there" >&2

# Architectures of images, and what dates everything in them.
IMAGE_ARCHITECTURES ?= amd64 arm64
SOURCE_DATE         := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
COMMIT              := $(shell git rev-parse HEAD 2>/dev/null)

image: web ## Write container images to bin/images as OCI layouts, with SBOM and provenance
	for arch in $(IMAGE_ARCHITECTURES); do \
		VERSION=$(VERSION) scripts/cross-build linux $$arch bin/programs millrace millrace-attempt && scripts/fetch-uv $$arch bin/programs/uv-linux-$$arch || exit 1; done
	for name in millrace millrace-attempt; do \
		go run ./tools/image -recipe $$name -version $(VERSION) -commit "$(COMMIT)" -time $(SOURCE_DATE) -out bin/images/$$name \
			$$([ $$name = millrace-attempt ] || echo -lock web/package-lock.json -uv bin/programs/uv) \
			$(foreach arch,$(IMAGE_ARCHITECTURES),linux/$(arch)=bin/programs/$$name-linux-$(arch)) || exit 1; done

ARCH := $(shell go env GOARCH)

packages: web ## Write a .deb and an .rpm for machines like this one to bin/packages
	VERSION=$(VERSION) scripts/cross-build linux $(ARCH) bin/programs millrace
	scripts/fetch-uv $(ARCH) bin/programs/uv-linux-$(ARCH)
	rm -rf bin/packages
	VERSION=$(VERSION) SOURCE_DATE_EPOCH=$(SOURCE_DATE) scripts/make-packages bin/programs/millrace-linux-$(ARCH) bin/programs/uv-linux-$(ARCH) $(ARCH) bin/packages

release: web ## Write the files of a tagged version to bin/release, signed with SIGNING_KEY
	SIGNING_KEY='$(SIGNING_KEY)' scripts/make-release bin/release

test-deploy: setup-test image packages ## Test what is deployed: images and packages that run, the compose file, the chart, alerts
	@scripts/skipped $(MAKE) -j1 --no-print-directory deployments

deployments:
	go run ./tools/gotest -C tools/rules -count=1 ./...
	MILLRACE_TEST_PROGRAM=$(CURDIR)/bin/programs/millrace-linux-$(shell go env GOARCH) scripts/with-postgres scripts/with-s3 scripts/with-caddy go run ./tools/gotest -C tools/deploy -count=1 ./...
	MILLRACE_TEST_IMAGES=$(CURDIR)/bin/images $(GOTEST) -count=1 -run TestTheImageServes ./tools/image
	MILLRACE_TEST_PACKAGES=$(CURDIR)/bin/packages scripts/with-earlier $(GOTEST) -count=1 -timeout 60m -run 'TestPackages|TestARelease' ./deploy
	scripts/with-postgres scripts/with-s3 scripts/with-earlier $(GOTEST) -count=1 -run TestARollingUpgrade ./cmd/millrace

web-check: web ## Lint, type and test the web app, and weigh what it loads
	npm run --prefix web --silent check

browser: build ## Test the web app in Chromium against the real server
	scripts/in-memory scripts/with-uv npm run --prefix web --silent browser

picture: build ## Take the pictures of the README again (docs/images)
	@scripts/setup pictures
	MILLRACE_TEST_PICTURES=$(CURDIR)/.cache/pictures scripts/in-memory npm run --prefix web --silent browser -- picture demo
	cp .cache/pictures/canvas.png docs/images
	img2webp -loop 0 -d 1500 -lossy -q 80 -m 6 .cache/pictures/demo-?.png -o docs/images/demo.webp

contract: build ## Hold the server against its OpenAPI document, role by role
	scripts/contract bin/millrace

# Runs tests and notes what it skips. vet has looked at all of it already. Without
# symbols, programs of tests are linked in half the time.
GOTEST = go run ./tools/gotest -vet=off -ldflags=-s

# Three packages at a time on two cores: the tests of processes and clusters mostly wait.
GO_TEST = scripts/skipped scripts/in-memory $(SERVICES) $(GOTEST) -p 3 -timeout 25m
RACED   = $$(go list ./... | grep -vE '$(WITHOUT_RACES)')
UNRACED = $$(go list ./... | grep -E '$(WITHOUT_RACES)')

test: setup-test format vet lint tidy web-check shim ## Test everything with real PostgreSQL, S3, Slurm and Chromium
	@scripts/skipped $(MAKE) -j1 --no-print-directory go-tests client-tests

# Each package once, with the race detector where it can find something, and
# everything that takes longer than somebody waits: full sizes, kill loops,
# clusters, deployments, Nextflow and fuzzing.
test-all: export MILLRACE_TEST_ALL := 1
test-all: setup-test verify format vet lint web-check ## Test everything at full size, with the race detector, on real clusters; takes hours
	@scripts/skipped $(MAKE) -j1 --no-print-directory race unraced client-tests test-mcp test-ldap test-nextflow test-engines test-deploy attack chaos fuzz

go-tests:
	$(GO_TEST) ./...
	go -C bench test ./...

unraced:
	$(GO_TEST) $(UNRACED)

client-tests:
	$(MAKE) --no-print-directory -j2 -Oline browser contract test-python

race: setup-test shim ## Run what starts goroutines with the race detector
	$(GO_TEST) $(RACE) $(RACED)

test-python: setup-test build ## Check and test the Python packages against the real server
	scripts/with-postgres scripts/test-python

test-mcp: setup-test build ## Hold the server against the conformance suite of the Model Context Protocol
	scripts/mcp-conformance bin/millrace

test-nextflow: build ## Launch a pipeline with the real Nextflow, and have it report as the docs and the app say; fetching it takes a minute the first time
	scripts/setup nextflow
	scripts/skipped scripts/with-nextflow $(GOTEST) -count=1 -timeout 10m -run TestARealNextflow ./cmd/millrace
	scripts/in-memory scripts/with-nextflow npm run --prefix web --silent browser -- pipelines -t 'lines of the page'

test-engines: shim ## Test Kubernetes against a real cluster; building that takes minutes the first time
	scripts/setup engines
	scripts/skipped scripts/test-engines

# All runs of the mixture, where make test and make test-engines have some of them.
MIXED ?= 300

test-same: shim ## Run 300 mixed runs and the examples here, on Slurm and on Kubernetes, and compare what they make; takes a quarter of an hour
	scripts/setup engines
	go list -deps -test ./cmd/millrace >/dev/null
	MILLRACE_TEST_ENGINES=1 MILLRACE_TEST_MIXED=$(MIXED) scripts/skipped scripts/with-kubernetes scripts/with-slurm $(GOTEST) -count=1 -timeout 90m -v -run MakeTheSame ./cmd/millrace

test-ldap: ## Sign people of an LDAP directory in through the real Dex; building it takes minutes the first time
	scripts/skipped scripts/with-dex $(GOTEST) -count=1 -run TestPeopleOfAnLDAPDirectory ./internal/httpapi

attack: setup-test build ## Run the attacks that docs/security.md lists, on both databases
	scripts/skipped scripts/with-postgres scripts/with-uv scripts/attack

chaos: setup-test shim ## Stop, kill and cut off servers and workers in the middle of runs, and fill their disks; takes an hour
	MILLRACE_TEST_CHAOS=1 scripts/skipped scripts/with-postgres scripts/with-s3 scripts/with-slurm $(GOTEST) ./cmd/millrace ./internal/store -run 'TestACluster|TestTeamsGetEqualShares|TestRunsThatFillTheMachine|TestARunCannotFillTheDisk|TestDeletingThousands' -v -timeout 90m

check: format vet lint shim ## Run what a commit needs: formatting, vet, lint, short tests on SQLite
	MILLRACE_TEST_POSTGRES= scripts/skipped scripts/in-memory $(GOTEST) -short -p 3 ./...

verify: tidy ## Fail when generated files or go.mod are not current
	@scripts/verify

gen: ## Generate code from the API description
	go generate ./api/...
	npm ci --prefix web/tools --no-audit --no-fund --loglevel=error
	npm run --prefix web/tools --silent gen

bench: ## Measure the server beside PocketBase, nginx, versitygw and bare programs
	bench/run

load: ## Measure many runs, teams, workers and clients on one PostgreSQL (docs/scaling.md)
	bench/scale

# Twice: where gofumpt adds an empty line, the alignment around it changes.
fmt: $(GOFUMPT) ## Format the Go files
	@$(GO_FILES) | xargs -r $(GOFUMPT) -w
	@$(GO_FILES) | xargs -r $(GOFUMPT) -w

fuzz: ## Run each fuzz target for FUZZTIME (1m)
	scripts/fuzz $(FUZZTIME)

clean: ## Remove what was built, tools and peers too; the data folder stays
	rm -rf bin .cache/bin .cache/bench .cache/contract .cache/python .cache/mypy

setup-run:
	@scripts/setup run

setup-test:
	@scripts/setup test

format: $(GOFUMPT)
	@files=$$($(GO_FILES) | xargs -r $(GOFUMPT) -l) && \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi

vet:
	go vet ./...
	go -C bench vet ./...
	go -C tools/rules vet ./...

lint: $(STATICCHECK)
	$(STATICCHECK) ./...

tidy:
	go mod tidy -diff

$(STATICCHECK):
	GOBIN=$(TOOLS) go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv $(TOOLS)/staticcheck $@

$(GOFUMPT):
	GOBIN=$(TOOLS) go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	mv $(TOOLS)/gofumpt $@
