//! The convolutional part of a network, computed image by image, so that the output of a layer is
//! still in the cache when the next layer reads it.

use super::plan::{ConvolutionStage, Plan, Stage};
use crate::kernel::{
    Activation, Buffer, Dropout, PackedWeights, Plane, WeightSums, activate, activate_to_learn, arch,
    drop_out, multiply, pass_positive,
};
use crate::model::{Gradient, Parameters, Pass};
use crate::rows::RowBatch;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};
use pulp::Arch;

/// Offset of the body's dropout draws: the fully connected layers count from 0.
const FIRST_DROPOUT: usize = 1 << 20;

/// What the body keeps from `forward` to `backward`, and its scratch. Planes are those of the plan.
#[derive(Debug, Default)]
pub(super) struct BodyTape {
    /// The plan of these buffers. The borders of its planes are never written and keep their zeros.
    plan: Plan,
    /// Of each convolution.
    weights: Vec<PackedWeights>,
    sums: Vec<WeightSums>,
    /// Of each plane, image after image; only one image at a time if nothing is to be learnt.
    values: Vec<Buffer>,
    /// Slopes of the activation that made a plane, for those whose output does not tell them.
    slopes: Vec<Buffer>,
    /// Derivatives in each plane, of one image.
    derivatives: Vec<Buffer>,
    /// A line of zeros, for activations that would add a bias.
    no_bias: Vec<f32>,
    /// A copy of an image whose values are not contiguous.
    image: Vec<f32>,
    /// The input of the fully connected layers: images × features, pixel by pixel with contiguous
    /// channels.
    features: Buffer,
    dfeatures: Buffer,
    /// The draw of the training pass that `backward` will follow.
    draw: u64,
}

impl BodyTape {
    /// Features and space for derivatives in them: each images × features.
    pub(super) fn features(&mut self, n_images: usize) -> (ArrayView2<'_, f32>, ArrayViewMut2<'_, f32>) {
        let n_features = self.plan.planes.last().expect("forward has been here").n_values();
        let length = n_images * n_features;
        self.dfeatures.grow(length);
        let shape = (n_images, n_features);
        let features = ArrayView2::from_shape(shape, &self.features[..length]);
        let dfeatures = ArrayViewMut2::from_shape(shape, &mut self.dfeatures[..length]);
        (features.expect("cut to this shape"), dfeatures.expect("cut to this shape"))
    }

    /// Space for so many images.
    fn prepare(&mut self, plan: &Plan, n_images: usize, learn: bool) {
        if self.plan != *plan {
            *self = Self { plan: plan.clone(), ..Self::default() };
            let n_planes = plan.planes.len();
            self.values.resize_with(n_planes, Buffer::default);
            self.slopes.resize_with(n_planes, Buffer::default);
            self.derivatives = plan.planes.iter().map(|plane| Buffer::zeros(plane.len())).collect();
            self.weights.resize_with(plan.convolutions().count(), PackedWeights::default);
            self.sums.resize_with(plan.convolutions().count(), WeightSums::default);
            let longest = plan.planes.iter().map(Plane::line).max();
            self.no_bias = vec![0.0; longest.expect("the image is there")];
        }
        let n_kept = if learn { n_images } else { 1 };
        for (values, plane) in self.values.iter_mut().zip(&plan.planes) {
            values.grow(n_kept * plane.len());
        }
        for (stage, (slopes, plane)) in
            plan.stages.iter().zip(self.slopes.iter_mut().zip(&plan.planes).skip(1))
        {
            if let Stage::Convolution(ConvolutionStage {
                activation: Some(Activation::Gelu | Activation::Tanh),
                ..
            }) = stage
            {
                slopes.grow(n_kept * plane.len());
            }
        }
        self.features.grow(n_images * plan.n_features());
    }
}

/// The numbers of one of many images.
fn of(values: &[f32], plane: &Plane, image: usize) -> std::ops::Range<usize> {
    debug_assert!((image + 1) * plane.len() <= values.len());
    image * plane.len()..(image + 1) * plane.len()
}

impl Plan {
    /// Computes the features of a batch, on the tape.
    pub(super) fn forward(&self, parameters: &Parameters, rows: &RowBatch, pass: Pass, tape: &mut BodyTape) {
        let arch = arch();
        tape.prepare(self, rows.n_rows(), pass != Pass::Score);
        for (number, (form, packed)) in self.convolutions().zip(&mut tape.weights).enumerate() {
            let [weights, bias] = [0, 1].map(|block| {
                parameters.0[2 * number + block].values.as_slice().expect("parameters are contiguous")
            });
            packed.pack(arch, form, weights, bias);
        }
        if let Pass::Learn { draw } = pass {
            tape.draw = draw;
        }
        let n_features = self.n_features();
        for (image, row) in rows.dense.rows().into_iter().enumerate() {
            let slot = if pass == Pass::Score { 0 } else { image };
            let here = of(&tape.values[0], &self.planes[0], slot);
            read_image(row, &self.planes[0], &mut tape.image, &mut tape.values[0][here]);
            for stage in 0..self.stages.len() {
                self.stage_forward(arch, stage, image, slot, pass, tape);
            }
            let last = self.planes.len() - 1;
            let here = of(&tape.values[last], &self.planes[last], slot);
            tape.features[image * n_features..(image + 1) * n_features]
                .copy_from_slice(&tape.values[last][here][..n_features]);
        }
    }

    fn stage_forward(
        &self,
        arch: Arch,
        stage: usize,
        image: usize,
        slot: usize,
        pass: Pass,
        tape: &mut BodyTape,
    ) {
        let (from, to) = (&self.planes[stage], &self.planes[stage + 1]);
        let (before, after) = tape.values.split_at_mut(stage + 1);
        let input = &before[stage][of(&before[stage], from, slot)];
        let there = of(&after[0], to, slot);
        let output = &mut after[0][there.clone()];
        match &self.stages[stage] {
            Stage::Convolution(ConvolutionStage { form, activation, number, .. }) => {
                let relu = *activation == Some(Activation::Relu);
                form.forward(arch, &tape.weights[*number], relu, input, output);
                let Some(activation @ (Activation::Gelu | Activation::Tanh)) = *activation else { return };
                let no_bias = &tape.no_bias[..to.width * to.channels];
                for line in (0..to.height).map(|y| to.inside(y)) {
                    if pass == Pass::Score {
                        activate(activation, &mut output[line], no_bias);
                    } else {
                        let slopes = &mut tape.slopes[stage + 1][there.clone()][line.clone()];
                        activate_to_learn(activation, &mut output[line], no_bias, slopes);
                    }
                }
            }
            Stage::Pool { form, .. } => form.forward(arch, input, output),
            &Stage::Dropout(share) => {
                copy_lines(from, input, to, output);
                if let Pass::Learn { draw } = pass {
                    drop_out(self.dropout(share, draw, stage, image), output);
                }
            }
        }
    }

    /// The dropout of a stage on one image; the same in the backward pass.
    fn dropout(&self, share: f32, draw: u64, stage: usize, image: usize) -> Dropout {
        Dropout::new(share, draw, FIRST_DROPOUT + image * self.stages.len() + stage)
    }

    /// Writes the gradient of the convolutions' blocks, from the tape of `forward` and the
    /// derivatives in the features.
    pub(super) fn backward(&self, n_images: usize, tape: &mut BodyTape, gradient: &mut Gradient) {
        let arch = arch();
        for (form, sums) in self.convolutions().zip(&mut tape.sums) {
            sums.clear(arch, form);
        }
        // What stands before the first convolution has nothing to learn.
        let first = self.stages.iter().position(|stage| matches!(stage, Stage::Convolution(_)));
        let Some(first) = first else { return };
        let n_features = self.n_features();
        let last = self.planes.len() - 1;
        for image in 0..n_images {
            tape.derivatives[last][..n_features]
                .copy_from_slice(&tape.dfeatures[image * n_features..(image + 1) * n_features]);
            for stage in (first..self.stages.len()).rev() {
                self.stage_backward(arch, stage, image, stage > first, tape);
            }
        }
        for (number, sums) in tape.sums.iter().enumerate() {
            let weights = gradient.dense_mut(2 * number).as_slice_mut();
            sums.write_weights(weights.expect("gradients are contiguous"));
            let bias = gradient.dense_mut(2 * number + 1).as_slice_mut();
            sums.write_bias(bias.expect("gradients are contiguous"));
        }
    }

    /// From the derivatives in a stage's output to those in its input, if `asks` says that they are
    /// needed.
    fn stage_backward(&self, arch: Arch, stage: usize, image: usize, asks: bool, tape: &mut BodyTape) {
        let (from, to) = (&self.planes[stage], &self.planes[stage + 1]);
        let input = &tape.values[stage][of(&tape.values[stage], from, image)];
        let there = of(&tape.values[stage + 1], to, image);
        let output = &tape.values[stage + 1][there.clone()];
        let (before, after) = tape.derivatives.split_at_mut(stage + 1);
        let (dinput, doutput) = (&mut before[stage], &mut after[0]);
        match &self.stages[stage] {
            Stage::Convolution(ConvolutionStage { form, activation, number, relu_done }) => {
                for line in (0..to.height).map(|y| to.inside(y)) {
                    match activation {
                        Some(Activation::Relu) if !relu_done => {
                            pass_positive(&mut doutput[line.clone()], &output[line], 1.0);
                        }
                        Some(Activation::Gelu | Activation::Tanh) => {
                            let slopes = &tape.slopes[stage + 1][there.clone()];
                            multiply(&mut doutput[line.clone()], &slopes[line]);
                        }
                        _ => break,
                    }
                }
                form.weight_gradient(arch, input, doutput, &mut tape.sums[*number]);
                if asks {
                    dinput.fill(0.0);
                    form.input_gradient(arch, &tape.weights[*number], doutput, dinput);
                }
            }
            Stage::Pool { form, behind_relu } => {
                form.backward(arch, *behind_relu, input, output, doutput, dinput);
            }
            &Stage::Dropout(share) => {
                drop_out(self.dropout(share, tape.draw, stage, image), doutput);
                copy_lines(to, doutput, from, dinput);
            }
        }
    }
}

/// From channel after channel to pixel after pixel.
fn read_image(row: ArrayView1<f32>, plane: &Plane, scratch: &mut Vec<f32>, image: &mut [f32]) {
    let values = row.to_slice().unwrap_or_else(|| {
        scratch.clear();
        scratch.extend(row.iter());
        scratch
    });
    if plane.channels == 1 {
        for (y, line) in values.chunks_exact(plane.width).enumerate() {
            image[plane.inside(y)].copy_from_slice(line);
        }
        return;
    }
    for (channel, values) in values.chunks_exact(plane.height * plane.width).enumerate() {
        for (y, line) in values.chunks_exact(plane.width).enumerate() {
            let pixels = image[plane.inside(y)].chunks_exact_mut(plane.channels);
            pixels.zip(line).for_each(|(pixel, &value)| pixel[channel] = value);
        }
    }
}

/// Copies an image to a plane with another border.
fn copy_lines(from: &Plane, input: &[f32], to: &Plane, output: &mut [f32]) {
    for y in 0..from.height {
        output[to.inside(y)].copy_from_slice(&input[from.inside(y)]);
    }
}

#[cfg(test)]
impl BodyTape {
    /// Where its buffers are.
    pub(super) fn places(&self) -> Vec<*const f32> {
        let lists = [&self.values, &self.slopes, &self.derivatives];
        let buffers = lists.into_iter().flatten().chain([&self.features, &self.dfeatures]);
        buffers.map(|buffer| buffer.as_ptr()).chain(self.weights.iter().map(PackedWeights::place)).collect()
    }
}
