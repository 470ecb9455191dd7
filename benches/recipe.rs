//! What `LLPClassifier.fit` costs beyond the training itself: `recipe FOLDER` writes MNIST's pixels to FOLDER for NumPy, trains by the
//! settings that `overhead.py` beside this file trains by, and prints the seconds of each of five times.

use easyllp::fit::{FitConfig, OptimizerConfig, Penalty, ValidationConfig};
use easyllp::table::Column;
use easyllp::{Bags, Result, Rows, bagging};
use easyllp_benches::mnist;
use std::num::NonZeroUsize;
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
    let config = |model: &str, optimizer| -> Result<FitConfig> {
        let validation = ValidationConfig { share: 0.0, ..ValidationConfig::default() };
        Ok(FitConfig { model: model.parse()?, optimizer, validation, ..FitConfig::default() })
    };
    let l2 = OptimizerConfig { l2: Some(Penalty::Value(0.01)), ..OptimizerConfig::default() };
    let epochs = OptimizerConfig { epochs: NonZeroUsize::new(3), ..OptimizerConfig::default() };
    let configs = [("linear", config("linear", l2)?), ("mlp:256", config("mlp:256", epochs)?)];
    for (name, config) in configs {
        for _ in 0..5 {
            let begun = Instant::now();
            let rows = Rows::dense(pixels.view())?;
            config.fit(&rows, &bags)?;
            println!("{name} {:.4}", begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
