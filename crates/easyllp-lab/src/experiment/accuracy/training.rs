//! One model at a time, by any method.

use super::{Course, Setting, told};
use crate::error::Result;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::{AnyModel, Judge, Lesson, LossName, MethodName, MethodOptions, Model, ModelName};
use std::sync::Arc;

/// A training.
pub(super) struct Training<'d> {
    pub(super) setting: Arc<Setting<'d>>,
    /// The place of its task.
    pub(super) task: usize,
    pub(super) method: MethodName,
    pub(super) size: usize,
    pub(super) replica: u32,
}

impl<'d> Training<'d> {
    pub(super) fn cell(self) -> Cell<'d> {
        let Self { setting, task, method, size, replica } = &self;
        let band =
            format!("{}, {}, {}, {size} rows", setting.key(), method.as_str(), setting.tasks[*task].name);
        let of_model = if setting.accuracy.model == "linear" { 1.0 } else { 20.0 };
        Cell {
            key: format!("{band}, replica {replica}"),
            band,
            cost: of_model * setting.rows_in_all(),
            is_wide: false,
            work: Box::new(move |tell| self.train(tell)),
        }
    }

    fn train(&self, tell: &Tell) -> Result<Option<Vec<Point>>> {
        let Self { setting, method, size, replica, .. } = self;
        let (accuracy, data, task) = (&setting.accuracy, setting.data, &setting.tasks[self.task]);
        // Rows that are dealt anew in every round come as bags of one.
        let rebag = (accuracy.rebag && *method == MethodName::EasyLlp).then_some(*size);
        let partition = setting.partition(*replica, if rebag.is_some() { 1 } else { *size })?;
        let (bags, held_out) = setting.deal(&partition, task, *replica)?;
        let apart = held_out.map(|held_out| (data.train.select(&held_out.rows), held_out));
        let loss = LossName::Logistic.training()?;
        let mut course = Course::default();
        let mut figure = |model: &AnyModel| {
            let of_bags = apart.as_ref().map(|(rows, _)| model.scores(rows)).transpose()?;
            let judged = apart.as_ref().zip(of_bags.as_ref());
            let judged = judged.map(|((_, held_out), scores)| (held_out, scores.view()));
            let figure = course.see(task, model.scores(&data.test)?.view(), judged, loss.link())?;
            Ok(figure.unwrap_or(0.0))
        };
        let judge = Judge { figure: &mut figure, patience: accuracy.epochs, smoothing: 1 };
        let mut is_over = false;
        let mut watch = told(tell, 1, &mut is_over);
        let seed = setting.seed_of(&format!("replica {replica}, {}, {}", task.name, method.as_str()));
        let mut model = accuracy.model.parse::<ModelName>()?.build(data.form(), 2, seed)?;
        // Methods that go by rounds go one in a round of Adam's.
        let by_rounds = method.goes_by_rounds();
        let options = MethodOptions { rebag, rounds: accuracy.epochs, ..MethodOptions::default() };
        let lesson = Lesson { method: *method, options, bags: &bags, loss };
        let trainer = setting.trainer(if by_rounds { 1 } else { accuracy.epochs }, seed);
        trainer.fit_method(&mut model, &data.train, &lesson, &mut watch, Some(judge))?;
        drop(watch);
        Ok((!is_over).then(|| course.points(&task.name, *method, *size, *replica)))
    }
}
