# Every target sets up what it needs, once. PYTHON=python3.12 chooses the interpreter for the set-up.

SHELL := /bin/sh
PY := .venv/bin/python
# The Java that the set-up found; read when a command runs, since the set-up may just have written it.
WITH_JAVA = JAVA_HOME="$$(cat .java-home)"

# Printed after each group of tests: where its time goes.
SLOWEST = --durations=12 --durations-min=5

.DEFAULT_GOAL := help
.NOTPARALLEL: # tests measure time and share the cores by themselves
.PHONY: help setup run demo test test-pure test-spark test-airflow test-slow test-order mutations lint coverage format bench pictures requirements clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# OBJECT_STORE=1 also fetches what Spark needs for tables in an object store; a workspace that has some does it by itself.
export OBJECT_STORE WORKSPACE
test test-pure test-spark test-slow: OBJECT_STORE = 1
setup: ## virtual environment, Java 17, Delta's jars; repairs what is broken
	@sh tools/setup.sh

# WORKSPACE=dir serves that one, without a feed; FEED=0 leaves the feed out; PORT=8081 and so on move the ports.
run: setup ## the whole product on the example: Airflow, Spark, PostgreSQL, a feed (or WORKSPACE=dir)
	@$(WITH_JAVA) exec $(PY) -m partwise.cli serve $(if $(WORKSPACE),--workspace "$(WORKSPACE)",--example) \
		$(if $(filter 0 no false,$(FEED)),--no-feed) $(if $(PORT),--port $(PORT)) \
		$(if $(SPARK_PORT),--spark-port $(SPARK_PORT)) $(if $(SPARK_UI_PORT),--spark-ui-port $(SPARK_UI_PORT))

demo: setup ## the story in a terminal: data arrive, late rows arrive, exactly the changed parts are rebuilt
	@$(WITH_JAVA) $(PY) -m partwise.demo

test: lint test-pure test-spark test-airflow ## lint, then all tests but the slow ones (see test-slow); what CI runs

# Without Spark the tests are independent of each other and share the cores.
test-pure: setup
	@$(WITH_JAVA) $(PY) -m pytest -m "not spark and not airflow and not slow" -n 2 --dist loadgroup $(SLOWEST)

# Two processes, each with one Spark session. pytest's code 5 says that no test matched, which is no failure here.
test-spark: setup
	@$(WITH_JAVA) $(PY) -m pytest -m "spark and not slow" -n 2 --dist loadgroup $(SLOWEST) || [ $$? -eq 5 ]

# The whole product, as `make run` starts it.
test-airflow: setup
	@$(WITH_JAVA) $(PY) -m pytest -m "airflow and not slow" $(SLOWEST) || [ $$? -eq 5 ]

# Clusters, kills and recovery, the whole product from start to stop: too long for every change. MINIO=1 builds MinIO from
# its Go module and runs the tests of the storage layer against it, besides moto's server.
test-slow: setup ## the tests that `make test` leaves out, minutes each: clusters, kills, the whole product
	@$(WITH_JAVA) $(PY) -m pytest -m slow
	@[ "$(filter-out 0 no false,$(MINIO))" = "" ] || { sh tools/minio.sh && \
		$(PY) -m pytest tests/object_store -m "not spark" --minio .stores/minio; }

# About six times as long as `make test`. SEEDS="7" runs one order only.
SEEDS = 1 2 3
test-order: setup ## each group of tests in random orders, with two and with three workers: no test may need another
	@set -e; for seed in $(SEEDS); do for workers in 2 3; do for group in "not spark and not airflow" spark; do \
		echo "== $$group, order $$seed, $$workers workers"; \
		$(WITH_JAVA) $(PY) -m pytest -q -m "$$group and not slow" -n $$workers --dist loadgroup --shuffle $$seed; \
	done; done; $(WITH_JAVA) $(PY) -m pytest -q -m "airflow and not slow" --shuffle $$seed; done

mutations: setup ## breaks 30 rules one at a time and says which test notices
	@$(PY) tools/mutations.py

lint: setup ## format, rules, types, layers, the page's JavaScript
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/test_layers.py tests/test_house.py
	@sh tools/check_page.sh

# Branches of the code without Spark; the numbers say where no test looks, not how good the tests are.
coverage: setup ## which lines the tests without Spark reach; pages in coverage/
	@$(WITH_JAVA) COVERAGE_CORE=sysmon $(PY) -m coverage run -m pytest -q -m "not spark and not airflow and not slow"
	@$(PY) -m coverage html --quiet --directory coverage && $(PY) -m coverage report --skip-covered --sort=cover | tail -40

format: setup ## rewrites the code in the project's format
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

pictures: setup ## the pictures of docs/parts_page.md, from the demo workspace in Chromium
	@$(WITH_JAVA) $(PY) tools/pictures.py

bench: setup ## measurements; each prints its numbers
	@set -e; for file in benchmarks/bench_*.py; do \
		[ -e "$$file" ] || { echo "no benchmarks yet"; break; }; \
		echo "== $$file"; $(WITH_JAVA) $(PY) "$$file"; \
	done

requirements: setup ## compiles requirements.txt from requirements.in
	@$(PY) -m uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --no-annotate \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" \
		requirements.in --output-file requirements.txt

clean: ## removes what runs leave behind; `make run` starts afresh after it
	@sh tools/clean.sh

distclean: clean ## removes the set-up too
	@rm -rf .venv .jars .jars-* .peers .stores .java-home .setup.lock *.egg-info build
