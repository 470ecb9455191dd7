.PHONY: demo test test-burn test-page lint bench doc

# All but `burn`, which takes minutes to compile and has a target of its own.
FEATURES = easyllp/datasets,easyllp/tables

# What `make test` says depends on the code alone. To draw new cases: PROPTEST_RNG_SEED=2 make test.
export PROPTEST_RNG_SEED ?= 1

demo:
	cargo run --release -- demo

# The benches crate has no tests; lint checks that it builds.
test:
	cargo test --workspace --features $(FEATURES) --exclude easyllp-benches

# Networks written with Burn: lints, tests and the example.
test-burn:
	cargo clippy --package easyllp --all-targets --features burn -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --package easyllp --features burn --no-deps
	cargo test --package easyllp --features burn --test burn
	cargo test --package easyllp --features burn --doc model::burn
	cargo build --package easyllp --features burn --example burn --profile test

# The page of `evaluate --report` in headless Chromium (Debian's `chromium`); screenshots stay in target/page.
test-page:
	cargo test --workspace --features $(FEATURES) --exclude easyllp-benches --no-run   # builds the program, too
	python3 crates/easyllp-report/tests/page.py target/debug/easyllp target/page

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features $(FEATURES),easyllp-benches/tables -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features $(FEATURES),easyllp-benches/tables --no-deps

bench:
	cargo bench --package easyllp-benches

doc:
	cargo doc --workspace --features $(FEATURES) --no-deps --open
