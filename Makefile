.PHONY: demo test lint bench doc

demo:
	cargo run --release -- demo

# The benches crate has no tests; lint checks that it builds.
test:
	cargo test --workspace --all-features --exclude easyllp-benches

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

bench:
	cargo bench --package easyllp-benches

doc:
	cargo doc --workspace --all-features --no-deps --open
