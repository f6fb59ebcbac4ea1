//! Which frames are the user's own code.

use globset::{Glob, GlobSet, GlobSetBuilder};
use thiserror::Error;

/// Decides by a file's path whether its code is the user's own.
///
/// By default everything is, except installed packages (`site-packages`, `dist-packages`), the
/// standard library (`lib/python3.X/…`) and code without a file (`<frozen …>`, `<string>`).
/// Patterns replace the default: then only files that match one of them are the user's.
#[derive(Clone, Debug, Default)]
pub struct UserCode {
    patterns: Option<GlobSet>,
    globs: Vec<String>,
}

/// A pattern of `--user-code` that is not a glob.
#[derive(Debug, Error)]
#[error(
    "--user-code {pattern:?} is not a glob: {cause}; quote it like --user-code '*/my_project/*'"
)]
pub struct UserCodeError {
    /// The pattern as given.
    pub pattern: String,
    /// What is wrong with it.
    pub cause: globset::Error,
}

impl UserCode {
    /// The rule for these patterns; the default rule for none.
    ///
    /// # Errors
    /// A pattern that is not a glob.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<UserCode, UserCodeError> {
        if patterns.is_empty() {
            return Ok(UserCode::default());
        }
        let wrap = |pattern: &str, cause| UserCodeError {
            pattern: pattern.to_owned(),
            cause,
        };
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            set.add(Glob::new(pattern).map_err(|cause| wrap(pattern, cause))?);
        }
        let all = || patterns.iter().map(AsRef::as_ref).collect::<Vec<_>>();
        let set = set.build().map_err(|cause| wrap(&all().join(" "), cause))?;
        Ok(UserCode {
            patterns: Some(set),
            globs: patterns
                .iter()
                .map(|glob| glob.as_ref().to_owned())
                .collect(),
        })
    }

    /// The patterns as given; none for the default rule.
    pub fn globs(&self) -> &[String] {
        &self.globs
    }

    /// Whether the code of the Python file `file` is the user's own.
    pub fn is_user(&self, file: &str) -> bool {
        match &self.patterns {
            Some(patterns) => patterns.is_match(file),
            None => !is_installed(file) && !is_generated(file),
        }
    }

    /// Whether code of `file` may be the user's where nothing else in a stack is: a string that was
    /// given to `exec` or to `python -c`.
    pub(crate) fn may_be_user(&self, file: &str) -> bool {
        let machinery = [
            "<frozen",
            "<__array_function__",
            "<eval_with_key",
            "<template",
        ];
        self.patterns.is_none()
            && file.starts_with('<')
            && !machinery.iter().any(|prefix| file.starts_with(prefix))
    }
}

/// Code without a file that a user wrote: the frozen import system, `exec` of a generated string.
/// A notebook cell (`<ipython-input-…>`, or a file below `/tmp/ipykernel_…`) and `<stdin>` are
/// written by the user.
fn is_generated(file: &str) -> bool {
    file.is_empty()
        || (file.starts_with('<')
            && !file.starts_with("<ipython-input")
            && !file.starts_with("<stdin"))
}

/// Installed packages and the standard library, wherever the interpreter lives.
fn is_installed(file: &str) -> bool {
    let mut parts = file.split(['/', '\\']).peekable();
    while let Some(part) = parts.next() {
        match part {
            "site-packages" | "dist-packages" => return true,
            // Code that a compiler wrote (torch.compile).
            part if part.starts_with("torchinductor_") => return true,
            "lib" | "lib64" | "Lib" => {
                let below = parts.peek().copied().unwrap_or_default();
                if is_python_library(below) {
                    return true;
                }
            }
            _ => {}
        }
        if is_zipped_library(part) {
            return true;
        }
    }
    false
}

/// `python3.12`, `python3.13t`, `pypy3.10`.
fn is_python_library(part: &str) -> bool {
    ["python", "pypy"].iter().any(|name| {
        part.strip_prefix(name)
            .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// `python312.zip`: the standard library in an embedded distribution.
fn is_zipped_library(part: &str) -> bool {
    part.strip_suffix(".zip").is_some_and(is_python_library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_packages_and_the_library_are_not_the_users() {
        let rule = UserCode::default();
        for user in [
            "/home/me/train.py",
            "train.py",
            "/srv/lib/models/net.py",
            "/home/me/python3/train.py",
            "<ipython-input-3-abc>",
            "/tmp/ipykernel_12/33.py",
            "<stdin>",
        ] {
            assert!(rule.is_user(user), "{user}");
        }
        for other in [
            "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
            "/usr/lib/python3/dist-packages/x.py",
            "/usr/lib/python3.11/functools.py",
            "/opt/conda/lib/python3.13t/copy.py",
            "<frozen importlib._bootstrap>",
            "<string>",
            "",
            "/app/python312.zip/copy.py",
            "/tmp/torchinductor_me/ab/cab12.py",
        ] {
            assert!(!rule.is_user(other), "{other}");
        }
    }

    #[test]
    fn a_string_is_the_users_when_nothing_else_is() {
        let rule = UserCode::default();
        assert!(rule.may_be_user("<string>") && rule.may_be_user("<cell 3>"));
        assert!(!rule.may_be_user("<frozen runpy>") && !rule.may_be_user("/a/b.py"));
    }

    #[test]
    fn patterns_replace_the_default() {
        let rule = UserCode::new(&["*/site-packages/mine/*", "*/mine/run/*"]).unwrap();
        assert!(rule.is_user("/venv/lib/python3.12/site-packages/mine/a.py"));
        assert!(rule.is_user("/home/mine/run/train.py"));
        assert!(!rule.is_user("/home/me/train.py"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = UserCode::new(&["ok", "a[b"]).unwrap_err();
        assert_eq!(error.pattern, "a[b");
        assert!(error.to_string().contains("--user-code"));
    }
}
