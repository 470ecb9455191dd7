//! A method of one's own, in two stages: corrected targets, which find the signal at any bag size, and then the likelihood of
//! counts, which is precise near a good model. The better stage is chosen on validation bags, and replayed on all bags.
//!
//! ```sh
//! cargo run --release --package easyllp --example own_method
//! ```

use easyllp::method::{CountLikelihood, EasyLlp};
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::train::Aim;
use easyllp::{
    Bags, FitConfig, Method, Predictions, Result, Session, bagging, datasets, metrics, optim::Adam,
    train::Optimizer,
};

struct WarmStart;

impl Method for WarmStart {
    fn name(&self) -> &'static str {
        "warm-start"
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        session.train("easyllp", Aim::Targets(&mut EasyLlp::new(bags), loss))?;
        let optimizer = Optimizer::Adam(Adam { epochs: 20, ..Adam::default() });
        session.train_with("count-likelihood", Aim::Bags(&mut CountLikelihood::new(bags)), optimizer)
    }
}

#[expect(clippy::print_stdout, reason = "an example prints")]
pub(crate) fn main() -> Result<()> {
    let digits = datasets::optdigits()?;
    let encoder = Encoder::fit(&digits.train.table, EncoderOptions::default())?;
    let (rows, test) = (encoder.encode(&digits.train.table)?, encoder.encode(&digits.test.table)?);
    let is_odd = |labels: &[u32]| labels.iter().map(|digit| digit % 2).collect::<Vec<u32>>();
    let (odd, odd_in_test) = (is_odd(&digits.train.labels), is_odd(&digits.test.labels));
    let partition = bagging::random(rows.n_rows(), &bagging::Sizes::Fixed(16), 1)?;
    let bags = Bags::from_labels(partition, &odd, 2)?;

    let config = FitConfig::default();
    let mut briers = Vec::new();
    for fitted in [config.fit(&rows, &bags)?, config.fit_with(&WarmStart, &rows, &bags)?] {
        let scores = fitted.scores(&test)?;
        let brier = metrics::brier(&Predictions::new(scores.view(), fitted.link)?, &odd_in_test)?;
        let stages: Vec<&str> = fitted.stages.iter().map(|stage| stage.stage.as_str()).collect();
        println!("{}: Brier score {brier:.4}", stages.join(" → "));
        briers.push(brier);
    }
    assert!(briers[1] < briers[0], "the second stage makes the model better: {briers:?}");
    Ok(())
}
