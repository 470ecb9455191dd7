//! A type-erased model: what a session trains, scores with and copies.

use crate::aim::Aim;
use crate::error::Result;
use crate::model::{LinearModel, Model, Scorer};
use crate::rows::Rows;
use crate::train::{EarlyStopping, TrainLog, Trainer, Watch};
use std::any::Any;

/// Any model that can be trained and copied.
pub(crate) trait Learner: Scorer {
    fn check(&self, rows: &Rows) -> Result<()>;

    fn n_scores(&self) -> usize;

    fn train(
        &mut self,
        trainer: &Trainer,
        rows: &Rows,
        aim: Aim,
        watch: Watch,
        early_stopping: Option<EarlyStopping<dyn Scorer>>,
    ) -> Result<TrainLog>;

    fn as_linear_mut(&mut self) -> Option<&mut LinearModel>;

    fn boxed(&self) -> Box<dyn Learner>;

    fn as_scorer(&self) -> &(dyn Scorer + 'static);

    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<M: Model + Clone + 'static> Learner for M {
    fn check(&self, rows: &Rows) -> Result<()> {
        Model::check(self, rows)
    }

    fn n_scores(&self) -> usize {
        Model::n_scores(self)
    }

    fn train(
        &mut self,
        trainer: &Trainer,
        rows: &Rows,
        aim: Aim,
        watch: Watch,
        early_stopping: Option<EarlyStopping<dyn Scorer>>,
    ) -> Result<TrainLog> {
        let Some(EarlyStopping { metric, patience, smoothing }) = early_stopping else {
            return trainer.fit_watched(self, rows, aim, watch, None);
        };
        let mut metric = |model: &M| metric(model);
        let early_stopping = EarlyStopping { metric: &mut metric, patience, smoothing };
        trainer.fit_watched(self, rows, aim, watch, Some(early_stopping))
    }

    fn as_linear_mut(&mut self) -> Option<&mut LinearModel> {
        Model::as_linear_mut(self)
    }

    fn boxed(&self) -> Box<dyn Learner> {
        Box::new(self.clone())
    }

    fn as_scorer(&self) -> &(dyn Scorer + 'static) {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Clone for Box<dyn Learner> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}
