//! The four formats of `Content-Encoding` behind one step function: some bytes
//! in, at most one block out, never more. Pure.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation as _, OutBuffer};

use crate::failure::Failure;

/// 8 MiB, the window that RFC 8878 recommends decoders to support.
const ZSTD_WINDOW_LOG: u32 = 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// How far one step came.
pub(crate) struct Step {
    pub(crate) read: usize,
    pub(crate) written: usize,
    /// A stream is complete; another may follow.
    pub(crate) is_complete: bool,
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(crate) enum Decoder {
    /// Labelled as compressed, and is not.
    Plain,
    Gzip(Gzip),
    Inflate(Decompress),
    Brotli(Box<Brotli>),
    Zstd(zstd::stream::raw::Decoder<'static>),
}

impl Decoder {
    /// The decoder for a stream that starts so; at least four bytes are known.
    pub(crate) fn new(format: Format, start: &[u8]) -> Result<Self, Failure> {
        let is_gzip = start.starts_with(&GZIP);
        let is_zstd = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        Ok(match format {
            Format::Gzip | Format::Deflate if is_gzip => Self::Gzip(Gzip::default()),
            Format::Deflate => Self::Inflate(Decompress::new(is_zlib(start))),
            // Brotli has no mark of its own, but none of its streams starts with `<`.
            Format::Brotli if start.starts_with(b"<") => Self::Plain,
            Format::Brotli => {
                let state = Brotli::new_strict(
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                );
                Self::Brotli(Box::new(state))
            }
            Format::Zstd if is_zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new().map_err(bad)?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
                    .map_err(bad)?;
                Self::Zstd(decoder)
            }
            Format::Gzip | Format::Zstd => Self::Plain,
        })
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
        match self {
            Self::Plain => Err(bad("a plain body has nothing to decode")),
            Self::Gzip(gzip) => gzip.step(input, output),
            Self::Inflate(inflate) => self::inflate(inflate, input, output),
            Self::Brotli(state) => brotli(state, input, output),
            Self::Zstd(decoder) => {
                let mut from = InBuffer::around(input);
                let mut to = OutBuffer::around(output);
                let hint = decoder.run(&mut from, &mut to).map_err(bad)?;
                Ok(Step {
                    read: from.pos(),
                    written: to.pos(),
                    is_complete: hint == 0,
                })
            }
        }
    }
}

fn bad(error: impl std::fmt::Display) -> Failure {
    Failure::BadEncoding {
        why: error.to_string(),
    }
}

/// RFC 1950: method 8, and a header that is a multiple of 31. Some servers send
/// bare deflate instead.
fn is_zlib(start: &[u8]) -> bool {
    matches!(start, [a, b, ..] if a & 0x0f == 8 && u16::from_be_bytes([*a, *b]).is_multiple_of(31))
}

fn inflate(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
    let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress(input, output, FlushDecompress::None)
        .map_err(bad)?;
    Ok(Step {
        read: (inflate.total_in() - before_in) as usize,
        written: (inflate.total_out() - before_out) as usize,
        is_complete: status == Status::StreamEnd,
    })
}

fn brotli(state: &mut Brotli, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
    let (mut read, mut written, mut total) = (0, 0, 0);
    let (mut left, mut room) = (input.len(), output.len());
    let result = BrotliDecompressStream(
        &mut left,
        &mut read,
        input,
        &mut room,
        &mut written,
        output,
        &mut total,
        state,
    );
    if let BrotliResult::ResultFailure = result {
        return Err(bad("not a brotli stream"));
    }
    Ok(Step {
        read,
        written,
        is_complete: matches!(result, BrotliResult::ResultSuccess),
    })
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Gzip (RFC 1952) of one or more members. Checksums are not compared: no
/// browser does, and deflate notices damage that matters.
#[derive(Default)]
pub(crate) struct Gzip {
    part: Part,
}

enum Part {
    Header(Vec<u8>),
    Body(Decompress),
    /// Bytes of the trailer that are still missing.
    Trailer(usize),
}

impl Default for Part {
    fn default() -> Self {
        Self::Header(Vec::new())
    }
}

const GZIP_TRAILER_BYTES: usize = 8;

/// A name or comment in a header that is longer is an attack.
const MAX_GZIP_HEADER_BYTES: usize = 16 * 1024;

impl Gzip {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
        if let Part::Trailer(0) = self.part
            && !input.is_empty()
        {
            self.part = Part::Header(Vec::new());
        }
        let silent = |read| Step {
            read,
            written: 0,
            is_complete: false,
        };
        match &mut self.part {
            Part::Header(seen) => {
                let before = seen.len();
                seen.extend_from_slice(input);
                if seen.iter().zip(GZIP).any(|(byte, magic)| *byte != magic) {
                    return Err(bad("not a gzip stream"));
                }
                if let Some(end) = header_bytes(seen) {
                    self.part = Part::Body(Decompress::new(false));
                    return Ok(silent(end - before));
                }
                if seen.len() > MAX_GZIP_HEADER_BYTES {
                    return Err(bad("the gzip header has no end"));
                }
                Ok(silent(input.len()))
            }
            Part::Body(inflate) => {
                let step = self::inflate(inflate, input, output)?;
                if step.is_complete {
                    self.part = Part::Trailer(GZIP_TRAILER_BYTES);
                }
                Ok(step)
            }
            Part::Trailer(left) => {
                let read = input.len().min(*left);
                *left -= read;
                Ok(silent(read))
            }
        }
    }
}

/// Where the header ends, once it does.
fn header_bytes(seen: &[u8]) -> Option<usize> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let flags = *seen.get(3)?;
    let mut end = 10;
    if flags & EXTRA != 0 {
        let length = seen.get(end..end + 2)?;
        end += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            end += seen.get(end..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        end += 2;
    }
    (seen.len() >= end).then_some(end)
}
