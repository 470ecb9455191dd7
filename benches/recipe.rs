//! What `LLPClassifier.fit` costs beyond the training itself: `recipe FOLDER` writes MNIST's pixels to FOLDER for NumPy, trains by the
//! recipe that `overhead.py` beside this file trains by, and prints the seconds of each of five times.

use easyllp::recipe::{Penalty, Recipe};
use easyllp::table::Column;
use easyllp::{Bags, Result, Rows, bagging};
use easyllp_benches::mnist;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("a folder for the pixels");
    let [(images, labels), _] = mnist::even_and_odd()?.expect("MNIST's files");
    let [(_, Column::Vector(pixels))] = images.columns() else { panic!("one column of images") };
    let pixels = pixels.mapv(|pixel| pixel / 255.0);
    let bytes: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
    std::fs::write(Path::new(&folder).join("pixels"), bytes).expect("room for the pixels");
    let text: Vec<u8> = labels.iter().map(|&label| u8::try_from(label).expect("0 or 1")).collect();
    std::fs::write(Path::new(&folder).join("labels"), text).expect("room for the labels");

    let partition = bagging::random(labels.len(), &bagging::Sizes::Fixed(64), 1)?;
    let bags = Bags::from_labels(partition, &labels, 2)?;
    let recipes = [
        ("linear", Recipe { l2: Some(Penalty::Value(0.01)), holdout: 0.0, ..Recipe::default() }),
        (
            "mlp:256",
            Recipe {
                model: "mlp:256".parse()?,
                epochs: NonZeroUsize::new(3),
                holdout: 0.0,
                ..Recipe::default()
            },
        ),
    ];
    for (name, recipe) in recipes {
        for _ in 0..5 {
            let begun = Instant::now();
            let rows = Rows::dense(pixels.view())?;
            recipe.fit(&rows, &bags, None, &mut |_| ControlFlow::Continue(()))?;
            println!("{name} {:.4}", begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
