//! Text to selector. Accepts the part of CSS that pages are addressed with and
//! rejects the rest by name, so that a source never silently matches nothing.

use thiserror::Error;

use super::{Combinator, Complex, Compound, Operator, Selector, Test};

/// Why a selector is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{selector}\" is not a valid selector at column {column}: {problem}")]
pub struct SelectorError {
    pub selector: String,
    /// From 1, in characters.
    pub column: usize,
    pub problem: String,
}

pub(super) fn parse(text: &str) -> Result<Selector, SelectorError> {
    let mut reader = Reader { text, at: 0 };
    let mut alternatives = Vec::new();
    loop {
        reader.blank();
        alternatives.push(reader.complex()?);
        match reader.peek() {
            None => return Ok(Selector { alternatives }),
            Some(',') => reader.at += 1,
            Some(other) => return Err(reader.error(&format!("'{other}' is not expected here"))),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn blank(&mut self) -> bool {
        let before = self.at;
        while let Some(c) = self.peek().filter(|c| c.is_whitespace()) {
            self.at += c.len_utf8();
        }
        self.at > before
    }

    fn error(&self, problem: &str) -> SelectorError {
        SelectorError {
            selector: self.text.to_owned(),
            column: self.text[..self.at].chars().count() + 1,
            problem: problem.to_owned(),
        }
    }

    fn complex(&mut self) -> Result<Complex, SelectorError> {
        let mut last = self
            .compound()?
            .ok_or_else(|| self.error("a selector is empty"))?;
        let mut before = Vec::new();
        loop {
            let space = self.blank();
            let combinator = match self.peek() {
                Some('>') => Combinator::Child,
                Some('+') => Combinator::Next,
                Some('~') => Combinator::Later,
                None | Some(',' | ')') => return Ok(Complex { last, before }),
                Some(_) if space => Combinator::Descendant,
                Some(other) => return Err(self.error(&format!("'{other}' is not expected here"))),
            };
            if combinator != Combinator::Descendant {
                self.at += 1;
                self.blank();
            }
            let next = self
                .compound()?
                .ok_or_else(|| self.error("a selector is missing after the combinator"))?;
            before.insert(0, (combinator, std::mem::replace(&mut last, next)));
        }
    }

    fn compound(&mut self) -> Result<Option<Compound>, SelectorError> {
        let mut compound = Compound::default();
        let start = self.at;
        if !self.take('*') && self.peek().is_some_and(|c| c.is_alphabetic()) {
            compound.name = Some(self.name()?);
        }
        while let Some(c) = self.peek() {
            let test = match c {
                '.' | '#' => {
                    self.at += 1;
                    let (name, operator) = if c == '.' {
                        ("class", Operator::Includes)
                    } else {
                        ("id", Operator::Equals)
                    };
                    Test::Attribute {
                        name: name.to_owned(),
                        operator,
                        value: self.name()?,
                        any_case: false,
                    }
                }
                '[' => self.attribute()?,
                ':' => self.pseudo()?,
                _ => break,
            };
            compound.tests.push(test);
        }
        Ok((self.at > start).then_some(compound))
    }

    fn name(&mut self) -> Result<String, SelectorError> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.at += 1;
                if let Some(escaped) = self.peek() {
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
            } else if c.is_alphanumeric() || matches!(c, '-' | '_') {
                if name.is_empty() && c.is_ascii_digit() {
                    break;
                }
                name.push(c);
                self.at += c.len_utf8();
            } else {
                break;
            }
        }
        if name.is_empty() {
            Err(self.error("a name is missing"))
        } else {
            Ok(name)
        }
    }

    fn attribute(&mut self) -> Result<Test, SelectorError> {
        self.at += 1;
        self.blank();
        let name = self.name()?;
        self.blank();
        let operator = match self.peek() {
            Some('=') => Operator::Equals,
            Some('~') => Operator::Includes,
            Some('^') => Operator::Starts,
            Some('$') => Operator::Ends,
            Some('*') => Operator::Contains,
            Some('|') => Operator::Dash,
            _ => Operator::Present,
        };
        let (mut value, mut any_case) = (String::new(), false);
        if operator != Operator::Present {
            if operator != Operator::Equals {
                self.at += 1;
            }
            if !self.take('=') {
                return Err(self.error("'=' is missing"));
            }
            self.blank();
            value = self.value()?;
            self.blank();
            any_case = self.take('i') || self.take('I');
            self.blank();
        }
        if !self.take(']') {
            return Err(self.error("']' is missing"));
        }
        Ok(Test::Attribute {
            name,
            operator,
            value,
            any_case,
        })
    }

    fn value(&mut self) -> Result<String, SelectorError> {
        let Some(quote) = self.peek().filter(|c| matches!(c, '"' | '\'')) else {
            let rest = &self.text[self.at..];
            let end = rest
                .find(|c: char| c == ']' || c.is_whitespace())
                .unwrap_or(rest.len());
            self.at += end;
            return if end == 0 {
                Err(self.error("a value is missing"))
            } else {
                Ok(rest[..end].to_owned())
            };
        };
        let rest = &self.text[self.at + 1..];
        let Some(end) = rest.find(quote) else {
            return Err(self.error("a quote is not closed"));
        };
        self.at += end + 2;
        Ok(rest[..end].to_owned())
    }

    fn pseudo(&mut self) -> Result<Test, SelectorError> {
        self.at += 1;
        let start = self.at;
        let name = self.name()?;
        match name.as_str() {
            "first-child" => Ok(Test::NthChild(1)),
            "last-child" => Ok(Test::LastChild),
            "nth-child" => {
                let inside = self.parenthesis()?;
                let number = inside.trim().parse().ok().filter(|n| *n > 0);
                number
                    .map(Test::NthChild)
                    .ok_or_else(|| self.error("a whole number is expected in :nth-child()"))
            }
            "not" => {
                if !self.take('(') {
                    return Err(self.error("'(' is missing"));
                }
                self.blank();
                let compound = self
                    .compound()?
                    .ok_or_else(|| self.error("a selector is empty"))?;
                self.blank();
                if self.take(')') {
                    Ok(Test::Not(Box::new(compound)))
                } else {
                    Err(self.error("')' is missing"))
                }
            }
            _ => {
                self.at = start;
                Err(self.error(&format!("':{name}' is not supported")))
            }
        }
    }

    fn parenthesis(&mut self) -> Result<String, SelectorError> {
        if !self.take('(') {
            return Err(self.error("'(' is missing"));
        }
        let rest = &self.text[self.at..];
        let Some(end) = rest.find(')') else {
            return Err(self.error("')' is missing"));
        };
        self.at += end + 1;
        Ok(rest[..end].to_owned())
    }
}
