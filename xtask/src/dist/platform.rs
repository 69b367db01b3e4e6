//! The platforms that packages are made for: how rustc, Node and Python name each of them.

use anyhow::{Context as _, Result};

/// The platforms of a release, as rustc names them: the npm package asks for their programs. Each is built on a machine
/// of its own, so this is a decision and not what happens to be packed.
pub(crate) const RELEASED: &[&str] = &["x86_64-unknown-linux-gnu"];

/// The names of one platform.
#[derive(Debug)]
pub(crate) struct Platform {
    /// As rustc names it.
    pub(crate) target: &'static str,
    /// `process.platform` of Node.
    pub(crate) node_system: &'static str,
    /// `process.arch` of Node.
    pub(crate) node_processor: &'static str,
    wheel: WheelPlatform,
}

/// How a wheel names a platform.
#[derive(Debug)]
enum WheelPlatform {
    /// Linux with glibc, on this processor. Which version is asked for shows in the program.
    Glibc(&'static str),
    /// The whole name. For macOS with the oldest version that Rust builds for.
    Fixed(&'static str),
}

const PLATFORMS: &[Platform] = &[
    Platform {
        target: "x86_64-unknown-linux-gnu",
        node_system: "linux",
        node_processor: "x64",
        wheel: WheelPlatform::Glibc("x86_64"),
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        node_system: "linux",
        node_processor: "arm64",
        wheel: WheelPlatform::Glibc("aarch64"),
    },
    Platform {
        target: "x86_64-apple-darwin",
        node_system: "darwin",
        node_processor: "x64",
        wheel: WheelPlatform::Fixed("macosx_10_12_x86_64"),
    },
    Platform {
        target: "aarch64-apple-darwin",
        node_system: "darwin",
        node_processor: "arm64",
        wheel: WheelPlatform::Fixed("macosx_11_0_arm64"),
    },
    Platform {
        target: "x86_64-pc-windows-msvc",
        node_system: "win32",
        node_processor: "x64",
        wheel: WheelPlatform::Fixed("win_amd64"),
    },
    Platform {
        target: "aarch64-pc-windows-msvc",
        node_system: "win32",
        node_processor: "arm64",
        wheel: WheelPlatform::Fixed("win_arm64"),
    },
];

impl Platform {
    /// Returns the platform that rustc gives this name; `None` if there are no packages for it.
    pub(crate) fn find(target: &str) -> Option<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.target == target)
    }

    /// Returns Node's name: `linux-x64`.
    pub(crate) fn node_name(&self) -> String {
        format!("{}-{}", self.node_system, self.node_processor)
    }

    /// Returns the C library that npm is to look for, where there are several.
    pub(crate) const fn node_libc(&self) -> Option<&'static str> {
        match self.wheel {
            WheelPlatform::Glibc(_) => Some("glibc"),
            WheelPlatform::Fixed(_) => None,
        }
    }

    /// Returns the file name of a native module of Python's stable interface: `_native.abi3.so`.
    pub(crate) fn python_module(&self, name: &str) -> String {
        match self.node_system {
            "win32" => format!("{name}.pyd"),
            _ => format!("{name}.abi3.so"),
        }
    }

    /// Returns the platform tag of a wheel with these programs: `manylinux_2_34_x86_64`.
    ///
    /// # Errors
    /// If one for glibc asks for none, so that it is not what it is said to be.
    pub(crate) fn wheel_tag(&self, programs: &[&[u8]]) -> Result<String> {
        match self.wheel {
            WheelPlatform::Fixed(tag) => Ok(tag.to_owned()),
            WheelPlatform::Glibc(processor) => {
                let versions = programs.iter().map(|program| find_newest_glibc(program));
                let versions: Option<Vec<(u32, u32)>> = versions.collect();
                let newest = versions.and_then(|versions| versions.into_iter().max());
                let (major, minor) = newest.context("the program asks for no version of glibc")?;
                Ok(format!("manylinux_{major}_{minor}_{processor}"))
            }
        }
    }
}

/// Returns the newest version of glibc that the program names. Without that or a newer one it does not start.
fn find_newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    // The names that the dynamic linker compares stand in the program as strings that end with a zero. Another text of
    // this form could only make the tag stricter.
    let strings = program.split(|byte| *byte == 0);
    strings
        .filter_map(|string| string.strip_prefix(b"GLIBC_"))
        .filter_map(|version| parse_version(std::str::from_utf8(version).ok()?))
        .max()
}

/// The first two numbers of `2.34` or `2.2.5`; `None` for `PRIVATE` and other words.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_wheel_is_what_the_program_asks_for() {
        let cases: [(&str, &[u8], Option<&str>); 5] = [
            (
                "x86_64-unknown-linux-gnu",
                b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0",
                Some("manylinux_2_34_x86_64"),
            ),
            (
                "aarch64-unknown-linux-gnu",
                b"x\0GLIBC_2.17\0GLIBC_PRIVATE\0 GLIBC_2.99 \0",
                Some("manylinux_2_17_aarch64"),
            ),
            ("x86_64-unknown-linux-gnu", b"no names at all", None),
            ("aarch64-apple-darwin", b"", Some("macosx_11_0_arm64")),
            ("x86_64-pc-windows-msvc", b"", Some("win_amd64")),
        ];
        for (target, program, expected) in cases {
            let tag = Platform::find(target).unwrap().wheel_tag(&[program]);
            assert_eq!(tag.ok().as_deref(), expected, "{target}");
        }
        let linux = Platform::find("x86_64-unknown-linux-gnu").unwrap();
        let both: [&[u8]; 2] = [b"\0GLIBC_2.17\0", b"\0GLIBC_2.34\0"];
        assert_eq!(linux.wheel_tag(&both).unwrap(), "manylinux_2_34_x86_64");
        assert!(linux.wheel_tag(&[both[0], b"none"]).is_err());
    }

    #[test]
    fn every_released_platform_has_names() {
        for target in RELEASED {
            assert!(Platform::find(target).is_some(), "{target}");
        }
        let mut names: Vec<String> = PLATFORMS.iter().map(Platform::node_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), PLATFORMS.len(), "{names:?}");
    }
}
