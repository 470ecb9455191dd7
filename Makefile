.PHONY: demo test test-vectors test-long test-burn test-page test-python test-extras test-sanitizer lint bench doc man wheel docs \
	docs-gallery docs-outputs

# All but `burn`, which takes minutes to compile and has a target of its own.
FEATURES = easyllp/datasets,easyllp/tables

# What `make test` says depends on the code alone. To draw new cases: PROPTEST_RNG_SEED=2 make test.
export PROPTEST_RNG_SEED ?= 1

demo:
	cargo run --release -- demo

# The benches crate has no tests; lint checks that it builds.
TEST = cargo test --workspace --features $(FEATURES) --exclude easyllp-benches
test:
	$(TEST)
	$(MAKE) test-vectors

# The numeric tests again, on every other kind of vector instructions that the machine has: the same binaries, chosen at run time.
# Tests are named by parts of their paths. Simulations say nothing about rounding, and large networks take minutes without vectors.
NUMERIC = kernel:: model:: optim:: train:: method:: loss:: fit:: session:: estimate:: \
	columns:: digits:: engine:: methods:: reference:: training:: --skip full_size --skip cnns_learn
test-vectors:
	$(TEST) --no-run --quiet   # builds the program, too
	@target/debug/easyllp --version
	@version=$$(target/debug/easyllp --version); \
	default=$$(echo "$$version" | sed -n 's/^vectors: \([a-z0-9]*\).*/\1/p'); \
	available=$$(echo "$$version" | sed -n 's/.*available: \(.*\))$$/\1/p'); \
	for vectors in $$available; do \
		test $$vectors = $$default && continue; \
		echo "numeric tests with EASYLLP_VECTORS=$$vectors"; \
		EASYLLP_VECTORS=$$vectors $(TEST) --lib --test suite --quiet -- $(NUMERIC) || exit 1; \
	done

# Simulations with more draws, which leave less to chance: minutes.
test-long:
	EASYLLP_LONG_TESTS=1 $(TEST) --test suite -- cover

# Networks written with Burn: lints, tests and the example.
test-burn:
	cargo clippy --package easyllp --all-targets --features burn -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --package easyllp --features burn --no-deps
	cargo test --package easyllp --features burn --test burn
	cargo test --package easyllp --features burn --doc model::burn
	cargo build --package easyllp --features burn --example burn

# The pages of `evaluate --report` and `reproduce` in headless Chromium (Debian's `chromium`); screenshots stay in target/page.
test-page:
	$(TEST) --no-run   # builds the program, too
	python3 crates/easyllp-report/tests/page.py target/debug/easyllp target/page
	python3 crates/easyllp-lab/tests/study_page.py target/debug/easyllp target/page/study

# The Python package: a wheel in an environment of its own, first with NumPy and scikit-learn alone, then with all that its tests
# compare with. The program is there to be compared with, too. The wheel is of the profile of tests, which has compiled most of it.
PYTHON ?= python3
ENVIRONMENT = target/python
test-python:
	$(TEST) --no-run   # builds the program, too
	rm -rf $(ENVIRONMENT) target/wheels
	$(PYTHON) -m venv $(ENVIRONMENT)
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	$(ENVIRONMENT)/bin/maturin build --quiet --out target/wheels
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check target/wheels/*.whl
	for example in quickstart model_selection; do $(ENVIRONMENT)/bin/python python/examples/$$example.py || exit 1; done
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check pytest hypothesis mypy pandas pyarrow polars onnx onnxruntime \
		lightgbm xgboost-cpu
	for example in your_reports are_my_bags_iid multi_class noisy_counts onnx_serving tuning; do \
		EASYLLP=$(CURDIR)/target/debug/easyllp $(ENVIRONMENT)/bin/python python/examples/$$example.py || exit 1; \
	done
	$(ENVIRONMENT)/bin/python -m pytest --quiet python/tests
	cd target && python/bin/python -m pytest --quiet --pyargs easyllp --doctest-modules --ignore-glob='/*/easyllp/torch.py'
	$(ENVIRONMENT)/bin/mypy
	cd target && python/bin/python -m mypy.stubtest easyllp._easyllp

# What needs a framework, in the environment of `test-python`: adapters with their docstrings, and the examples, two of which need
# `easyllp datasets get mnist` first.
test-extras:
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check torch jax keras matplotlib
	$(ENVIRONMENT)/bin/python -m pytest --quiet python/tests/test_torch.py
	cd target && python/bin/python -m pytest --quiet --pyargs easyllp --doctest-modules
	for example in keras_example jax_example; do \
		$(ENVIRONMENT)/bin/python python/examples/$$example.py --out target/$$example.svg || exit 1; \
	done
	$(MAKE) docs-gallery

# The fast loops, and all that is built on them, under AddressSanitizer, which stable compilers include under another name: Linux on x86-64.
# Random cases are fewer, since everything else is slower.
test-sanitizer:
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" PROPTEST_CASES=64 cargo test --package easyllp --lib \
		--target x86_64-unknown-linux-gnu --target-dir target/sanitizer -- kernel:: model:: optim::

# The site, from an empty environment: docstrings of the wheel, the program's own help, warnings as errors, links checked. The
# program is the one in target/debug, which `make test` builds, or is built here.
SITE = target/site
DOCS = target/docs-environment
docs: wheel
	test -x target/debug/easyllp || cargo build --package easyllp-cli
	rm -rf $(DOCS) $(SITE) docs/reference/generated
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --requirement docs/requirements.txt target/wheels/*.whl
	$(DOCS)/bin/sphinx-build --fail-on-warning --quiet --builder html docs $(SITE)
	$(DOCS)/bin/python docs/check_links.py $(SITE)
	@echo "$(SITE)/index.html"

# A wheel of the package, unless there is one that is newer than its sources.
wheel:
	@if [ -z "$$(find target/wheels -name '*.whl' 2>/dev/null)" ] || \
		[ -n "$$(find crates python/easyllp pyproject.toml -newer $$(ls -t target/wheels/*.whl | head -1) -type f | head -1)" ]; then \
		rm -rf target/wheels && $(PYTHON) -m venv target/maturin && \
		target/maturin/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' && \
		target/maturin/bin/maturin build --quiet --release --out target/wheels; \
	fi

# Runs the examples of the gallery and stores what they print and draw, in the environment of `test-python`. GALLERY=name runs one.
docs-gallery:
	$(ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check matplotlib
	EASYLLP=$(CURDIR)/target/debug/easyllp $(ENVIRONMENT)/bin/python docs/gallery/run.py $(GALLERY)

# Runs the code of all pages and writes what it prints into them. `make test-python` compares it.
docs-outputs:
	EASYLLP_UPDATE_DOCS=1 $(ENVIRONMENT)/bin/python -m pytest --quiet python/tests/test_docs.py

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features $(FEATURES),easyllp-benches/tables -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features $(FEATURES),easyllp-benches/tables --no-deps

bench:
	cargo bench --package easyllp-benches

# Manual pages, for packagers.
man:
	cargo run --release -- man target/man

doc:
	cargo doc --workspace --features $(FEATURES) --no-deps --open
