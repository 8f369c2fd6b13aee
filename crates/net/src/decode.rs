//! `Content-Encoding` decoded as the bytes arrive, with one budget for all that
//! comes out: a bomb is stopped while it explodes. Pure; memory is bounded by
//! the windows of the formats and by the budget.

use crate::failure::Failure;
use crate::inflate::{Decoder, Format, Step};
use crate::limits::Limits;

const MAX_LAYERS: usize = 2;

/// Bytes decoded at a time.
const BLOCK_BYTES: usize = 16 * 1024;

/// Decodes the bytes of a body as they arrive.
pub(crate) struct BodyDecoder {
    /// In the order in which they come off.
    layers: Vec<Layer>,
    output: Output,
}

impl BodyDecoder {
    pub(crate) fn new(
        content_encoding: Option<&str>,
        body_limit: u64,
        max_read: Option<usize>,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let formats = content_encoding.map_or(Ok(Vec::new()), formats)?;
        Ok(Self {
            layers: formats.into_iter().rev().map(Layer::new).collect(),
            output: Output {
                bytes: Vec::new(),
                wire_bytes: 0,
                limit: body_limit,
                max_read,
                ratio: limits.ratio,
                ratio_from: limits.ratio_from,
            },
        })
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.output.wire_bytes += chunk.len() as u64;
        feed(&mut self.layers, chunk, &mut self.output)
    }

    /// Whether there is nothing to decode.
    pub(crate) fn is_plain(&self) -> bool {
        self.layers.is_empty()
    }

    /// Makes the body's memory exactly this large, if it is smaller.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let output = &mut self.output.bytes;
        output.reserve_exact(bytes.saturating_sub(output.len()));
    }

    /// Decoded bytes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.output.bytes
    }

    pub(crate) fn wire_bytes(&self) -> u64 {
        self.output.wire_bytes
    }

    /// What came out, complete or not.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.output.bytes
    }

    /// The whole body, or why it is not whole.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, Failure> {
        for at in 0..self.layers.len() {
            let (layer, below) = self.layers[at..]
                .split_first_mut()
                .expect("the slice starts at a layer that exists");
            layer.end(|block| feed(below, block, &mut self.output))?;
        }
        Ok(self.output.bytes)
    }
}

fn formats(header: &str) -> Result<Vec<Format>, Failure> {
    let mut formats = Vec::new();
    for name in header.split(',') {
        formats.push(match name.trim().to_ascii_lowercase().as_str() {
            // Servers put charsets here, and words for "no encoding".
            "" | "identity" | "none" | "utf-8" => continue,
            "gzip" | "x-gzip" => Format::Gzip,
            "deflate" => Format::Deflate,
            "br" => Format::Brotli,
            "zstd" => Format::Zstd,
            other => {
                let why = format!("{other:?} is not in Accept-Encoding");
                return Err(Failure::BadEncoding { why });
            }
        });
    }
    if formats.len() > MAX_LAYERS {
        let header = header.chars().take(100).collect();
        return Err(Failure::TooManyEncodings { header });
    }
    Ok(formats)
}

/// The decoded bytes, and how many there may be.
struct Output {
    bytes: Vec<u8>,
    wire_bytes: u64,
    limit: u64,
    /// Bytes beyond this are not kept.
    max_read: Option<usize>,
    ratio: u64,
    ratio_from: u64,
}

impl Output {
    fn add(&mut self, block: &[u8]) -> Result<(), Failure> {
        let wanted = self.max_read.unwrap_or(usize::MAX) - self.bytes.len();
        let block = &block[..block.len().min(wanted)];
        let total = (self.bytes.len() + block.len()) as u64;
        if total > self.ratio_from && total / self.ratio > self.wire_bytes {
            return Err(Failure::CompressionBomb { ratio: self.ratio });
        }
        if total > self.limit {
            return Err(Failure::BodyTooLarge { limit: self.limit });
        }
        self.bytes.extend_from_slice(block);
        Ok(())
    }
}

fn feed(layers: &mut [Layer], block: &[u8], output: &mut Output) -> Result<(), Failure> {
    match layers.split_first_mut() {
        None => output.add(block),
        Some((layer, below)) => layer.feed(block, |block| feed(below, block, output)),
    }
}

/// One encoding. Servers label plain bodies as compressed, so the first bytes
/// decide whether there is anything to decode.
struct Layer {
    format: Format,
    /// The first bytes, while they are too few to decide.
    start: Vec<u8>,
    decoder: Option<Decoder>,
    /// A stream has come to its end; what follows may be another, or garbage.
    is_whole: bool,
}

/// Enough to tell a compressed body from a plain one.
const SNIFF_BYTES: usize = 4;

impl Layer {
    fn new(format: Format) -> Self {
        Self {
            format,
            start: Vec::new(),
            decoder: None,
            is_whole: false,
        }
    }

    fn feed(
        &mut self,
        chunk: &[u8],
        below: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if let Some(decoder) = &mut self.decoder {
            return run(decoder, &mut self.is_whole, chunk, below);
        }
        self.start.extend_from_slice(chunk);
        if self.start.len() < SNIFF_BYTES {
            return Ok(());
        }
        let start = std::mem::take(&mut self.start);
        let decoder = self.decoder.insert(Decoder::new(self.format, &start)?);
        run(decoder, &mut self.is_whole, &start, below)
    }

    fn end(&mut self, mut below: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        match &self.decoder {
            // Shorter than any compressed body: it is what it is.
            None => below(&self.start),
            Some(Decoder::Plain) => Ok(()),
            Some(_) if self.is_whole => Ok(()),
            Some(_) => {
                let why = "the compressed stream is incomplete".to_owned();
                Err(Failure::Truncated { why })
            }
        }
    }
}

fn run(
    decoder: &mut Decoder,
    is_whole: &mut bool,
    mut chunk: &[u8],
    mut below: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Decoder::Plain = decoder {
        return below(chunk);
    }
    let mut block = [0; BLOCK_BYTES];
    loop {
        let Step {
            read,
            written,
            is_complete,
        } = match decoder.step(chunk, &mut block) {
            Ok(step) => step,
            Err(_) if *is_whole => return Ok(()),
            Err(error) => return Err(error),
        };
        *is_whole |= is_complete;
        if read == 0 && written == 0 {
            return Ok(());
        }
        chunk = &chunk[read..];
        below(&block[..written])?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const TEXT: &str = "News, as they happen. Nothing lost, nothing twice. ";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bare_deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 3).unwrap()
    }

    /// A stored meta-block is all that a test needs of an encoder.
    fn brotli(bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() <= 1 << 16);
        // Window of 16 bits; not the last block; 4 nibbles of length - 1; stored.
        let head = (bytes.len() as u32 - 1) << 4 | 1 << 20;
        let mut stream = head.to_le_bytes()[..3].to_vec();
        stream.extend_from_slice(bytes);
        stream.push(3);
        stream
    }

    fn decoded(encoding: &str, body: &[u8], step: usize) -> Result<Vec<u8>, Failure> {
        let mut decoder = BodyDecoder::new(Some(encoding), 1 << 20, None, &Limits::default())?;
        for chunk in body.chunks(step) {
            decoder.push(chunk)?;
        }
        decoder.finish()
    }

    #[test]
    fn every_format_comes_out_as_it_went_in() {
        let text = TEXT.repeat(900).into_bytes();
        let named = [gzip(&text), b"and then some garbage".to_vec()].concat();
        let two_members = [gzip(&text[..100]), gzip(&text[100..])].concat();
        let mut with_name = gzip(&text);
        with_name[3] = 8 | 4;
        with_name.splice(10..10, *b"\x03\0xyzname.html\0");
        let rows: Vec<(&str, &str, Vec<u8>)> = vec![
            ("plain", "identity", text.clone()),
            ("gzip", "gzip", gzip(&text)),
            ("gzip by its old name", "X-GZIP", gzip(&text)),
            ("gzip with extra fields", "gzip", with_name),
            ("gzip in two members", "gzip", two_members),
            ("gzip and garbage", "gzip", named),
            ("deflate", "deflate", zlib(&text)),
            ("bare deflate", "deflate", bare_deflate(&text)),
            ("gzip called deflate", "deflate", gzip(&text)),
            ("brotli", "br", brotli(&text)),
            ("zstd", "zstd", zstd(&text)),
            (
                "zstd in two frames",
                "zstd",
                [zstd(&text[..50]), zstd(&text[50..])].concat(),
            ),
            (
                "zstd and garbage",
                "zstd",
                [zstd(&text), b"garbage".to_vec()].concat(),
            ),
            ("plain called gzip", "gzip", text.clone()),
            ("plain called zstd", "zstd", text.clone()),
            ("two layers", "gzip, br", brotli(&gzip(&text))),
            ("twice the same", "gzip, gzip", gzip(&gzip(&text))),
            ("a charset for an encoding", "utf-8", text.clone()),
        ];
        for (name, encoding, body) in rows {
            for step in [1, 3, 1000, usize::MAX] {
                let out = decoded(encoding, &body, step);
                assert!(
                    out.as_ref() == Ok(&text),
                    "{name} in steps of {step}: {:?}",
                    out.err()
                );
            }
        }
    }

    #[test]
    fn short_and_empty_bodies_are_what_they_are() {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(decoded(encoding, b"", 1), Ok(Vec::new()), "{encoding}");
            assert_eq!(
                decoded(encoding, b"ok", 1),
                Ok(b"ok".to_vec()),
                "{encoding}"
            );
        }
    }

    #[test]
    fn damage_is_named() {
        let text = TEXT.repeat(900).into_bytes();
        let half = |body: Vec<u8>| body[..body.len() / 2].to_vec();
        let mut broken = gzip(&text);
        broken[40..60].fill(0xff);
        let rows: Vec<(&str, &str, Vec<u8>, &str)> = vec![
            ("half a gzip", "gzip", half(gzip(&text)), "truncated"),
            ("half a deflate", "deflate", half(zlib(&text)), "truncated"),
            ("half a brotli", "br", half(brotli(&text)), "truncated"),
            ("half a zstd", "zstd", half(zstd(&text)), "truncated"),
            ("a broken gzip", "gzip", broken, "bad_encoding"),
            ("text called brotli", "br", TEXT.into(), "bad_encoding"),
            (
                "an unknown format",
                "compress",
                text.clone(),
                "bad_encoding",
            ),
            (
                "three layers",
                "gzip, gzip, br",
                gzip(&text),
                "too_many_encodings",
            ),
            (
                "too much",
                "identity",
                vec![b'x'; (1 << 20) + 1],
                "too_large",
            ),
            (
                "a bomb",
                "gzip",
                gzip(&vec![0; 4 << 20]),
                "compression_bomb",
            ),
            (
                "a bomb in a bomb",
                "gzip, gzip",
                gzip(&gzip(&vec![0; 4 << 20])),
                "compression_bomb",
            ),
            (
                "a zstd bomb",
                "zstd",
                zstd(&vec![0; 4 << 20]),
                "compression_bomb",
            ),
        ];
        for (name, encoding, body, code) in rows {
            for step in [7, usize::MAX] {
                let failure = decoded(encoding, &body, step).expect_err(name);
                assert_eq!(failure.code(), code, "{name}: {failure}");
            }
        }
    }

    #[test]
    fn a_window_of_gigabytes_is_refused() {
        // Magic, a frame header with a window of 2 GiB, then an empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
        let failure = decoded("zstd", &frame, 99).unwrap_err();
        assert_eq!(failure.code(), "bad_encoding", "{failure}");
    }
}
