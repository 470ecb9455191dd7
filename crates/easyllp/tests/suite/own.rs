//! A loss, a method and a model written outside the crate: the examples, run.

#[path = "../../examples/own_loss.rs"]
mod own_loss;
#[path = "../../examples/own_method.rs"]
mod own_method;
#[path = "../../examples/own_model.rs"]
mod own_model;

#[test]
fn a_loss_of_ones_own() {
    own_loss::main().unwrap();
}

#[test]
fn a_method_of_ones_own() {
    own_method::main().unwrap();
}

#[test]
fn a_model_of_ones_own() {
    own_model::main().unwrap();
}
