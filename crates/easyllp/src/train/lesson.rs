//! What is to be learnt, and what a method makes of it.

use crate::bags::Bags;
use crate::correction::Correction;
use crate::error::{Error, Result};
use crate::loss::TrainingLoss;
use crate::method::{
    AlternatingMeanMap, Alternation, BagObjective, Batches, CountLikelihood, DebiasedSquare, Draw, EasyLlp,
    EasyLlpByBag, LabelGeneration, LaplacianMeanMap, LlpEm, MeanMap, MethodName, MethodOptions, Naive,
    ProportionMatching, Rebagged, TargetRule, check_labelled,
};
use crate::prior::LabelPrior;
use crate::rows::Rows;

/// What is to be learnt, and by which method.
#[derive(Clone)]
pub struct Lesson<'l> {
    /// The method.
    pub method: MethodName,
    /// What the method leaves open; what it does not know of is not looked at.
    pub options: MethodOptions,
    /// The bags to learn from.
    pub bags: &'l Bags,
    /// The loss of rows. A method that judges bags has its own, but asks for scores that are log odds.
    pub loss: &'l dyn TrainingLoss,
}

/// The way in which a method teaches.
pub enum Way<'l> {
    /// It gives rows targets.
    Rows(Box<dyn TargetRule + 'l>),
    /// It judges whole bags.
    Bags(Box<dyn BagObjective + 'l>),
    /// It goes back and forth between targets and model.
    InTurn(Box<dyn Alternation + 'l>),
    /// It sees one row of each bag, once, and needs to know this prior.
    OnePass(LabelPrior),
}

impl<'l> Lesson<'l> {
    /// How the method teaches these rows; the seed is for what it draws.
    pub fn way(&self, rows: &Rows, seed: u64) -> Result<Way<'l>> {
        let &Self { method, ref options, bags, loss } = self;
        let correction = || options.correction.clone();
        Ok(match method {
            MethodName::Event => {
                check_labelled(method.as_str(), bags)?;
                Way::Rows(Box::new(Naive::new(bags)))
            }
            MethodName::Naive => Way::Rows(Box::new(Naive::new(bags))),
            MethodName::EasyLlp => match (options.rebag, options.batches) {
                (None, Batches::Rows) => Way::Rows(Box::new(EasyLlp::with(bags, correction(), options.draw))),
                _ if options.draw != Draw::Never => {
                    return Err(Error::Setting {
                        name: "draw",
                        value: format!("{:?}", options.draw),
                        expected: "`Never` where bags are dealt anew or batches are of whole bags",
                    });
                }
                (Some(size), Batches::Rows) => {
                    Way::Rows(Box::new(Rebagged::new(bags, size, correction(), seed)?))
                }
                (None, Batches::Bags) => {
                    Way::Bags(Box::new(EasyLlpByBag::new(bags, &options.correction, loss)?))
                }
                (Some(_), Batches::Bags) => {
                    return Err(Error::Setting {
                        name: "batches",
                        value: "bags".into(),
                        expected: "rows where bags are dealt anew",
                    });
                }
            },
            MethodName::EasyLlpSgd => Way::OnePass(match &options.correction {
                Correction::Paper(prior) => prior.clone(),
                _ => LabelPrior::pooled(bags),
            }),
            MethodName::MeanMap => Way::Rows(Box::new(MeanMap::with_ridge(bags, options.ridge)?)),
            MethodName::LaplacianMeanMap => {
                Way::Rows(Box::new(LaplacianMeanMap::new(bags, rows, options.smoothness)?))
            }
            MethodName::LabelGeneration => Way::Bags(Box::new(LabelGeneration::new(bags, options.epsilon)?)),
            MethodName::ProportionMatching => {
                Way::Bags(Box::new(ProportionMatching::new(bags, options.distance)))
            }
            MethodName::DebiasedSquare => Way::Bags(Box::new(DebiasedSquare::new(bags))),
            MethodName::CountLikelihood => Way::Bags(Box::new(CountLikelihood::new(bags))),
            MethodName::AlternatingMeanMap => {
                let start = MeanMap::with_ridge(bags, options.ridge)?;
                Way::InTurn(Box::new(AlternatingMeanMap::new(bags, start)))
            }
            MethodName::LlpEm => Way::InTurn(Box::new(LlpEm::new(bags))),
        })
    }
}
