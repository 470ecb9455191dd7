//! MNIST, if its files are there: in `$EASYLLP_DATA/mnist` or `~/.cache/easyllp/mnist`.

use easyllp::Result;
use easyllp::table::{Column, Source, Table, labels};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Images, and the class of each.
pub type Part = (Table, Vec<u32>);

/// Training rows and test rows, and whether each digit is odd; nothing if the files are not there.
pub fn even_and_odd() -> Result<Option<[Part; 2]>> {
    let odd = |(images, digits): Part| (images, digits.into_iter().map(|digit| digit % 2).collect());
    Ok(digits()?.map(|parts| parts.map(odd)))
}

/// The same with the digits themselves.
pub fn digits() -> Result<Option<[Part; 2]>> {
    let cache = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/easyllp"));
    let Some(folder) = std::env::var_os("EASYLLP_DATA").map(PathBuf::from).or_else(cache) else {
        return Ok(None);
    };
    let read = |part: &str| -> Result<Option<Part>> {
        let path = ["", ".gz"]
            .map(|packed| folder.join("mnist").join(format!("{part}-images-idx3-ubyte{packed}")))
            .into_iter()
            .find(|path| path.exists());
        let Some(path) = path else { return Ok(None) };
        let source = Source::open(&[path.display().to_string()], BTreeMap::new())?;
        let names: Vec<String> = source.columns().iter().map(|(name, _)| (*name).to_owned()).collect();
        let table = source.read(&names)?;
        let digits = match table.column("label")? {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits")]
            Column::Numeric(digits) => digits.iter().map(|&digit| digit as u32).collect(),
            column => labels("label", column, &[])?.labels,
        };
        let pixels: Vec<String> = names.into_iter().filter(|name| name != "label").collect();
        Ok(Some((table.select(&pixels)?, digits)))
    };
    Ok(read("train")?.zip(read("t10k")?).map(<[Part; 2]>::from))
}
