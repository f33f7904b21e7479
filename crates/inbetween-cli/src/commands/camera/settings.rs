//! What is kept between calls: whether smoothing is on, how much, of which modes, and how.
//!
//! A small JSON file, `inbetween/camera.json`, in the user's configuration folder
//! (`XDG_CONFIG_HOME`, `%APPDATA%`, `~/Library/Application Support` or `~/.config`;
//! `INBETWEEN_CONFIG` names another folder). Smoothing is off until it is turned on.

use std::path::PathBuf;

use clap::Args;
use inbetween::camera::{Overshoot, Smoothing, Unwrap};
use serde_json::{Value, json};

use crate::output::{Failure, Outcome, print, print_json};

/// The settings' command.
#[derive(Args)]
pub struct SettingsArgs {
    /// Turn smoothing on
    #[arg(long, conflicts_with = "off")]
    on: bool,
    /// Turn smoothing off
    #[arg(long)]
    off: bool,
    /// From 0 (the replay curve) to 1 (the smoothest curve through the keys)
    #[arg(long, value_name = "A")]
    amount: Option<f64>,
    /// Camera modes that are smoothed (free unless told otherwise)
    #[arg(long, value_name = "NAME")]
    mode: Vec<String>,
    /// An amount for one channel, such as fov=0.5; 'rotation' for quaternions
    #[arg(long, value_name = "NAME=A", value_parser = super::fly::named_amount)]
    channel: Vec<(String, f64)>,
    /// Whether angles go the short way round or keep the turns they are written with
    #[arg(long, value_name = "shortest|as-authored", value_parser = ["shortest", "as-authored"])]
    unwrap: Option<String>,
    /// Whether channels may run past their keys
    #[arg(long, value_name = "allow|prevent", value_parser = ["allow", "prevent"])]
    overshoot: Option<String>,
    /// Whether the replay curve brakes where a channel slows down or turns back
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    brake: Option<String>,
    /// Back to what it was at first
    #[arg(long)]
    reset: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl SettingsArgs {
    /// Changes what is said and shows the rest.
    pub fn run(self) -> Outcome {
        let mut smoothing = if self.reset { Smoothing::default() } else { load()? };
        let before = smoothing.clone();
        if self.on || self.off {
            smoothing.on = self.on;
        }
        if let Some(amount) = self.amount {
            if !(0.0..=1.0).contains(&amount) {
                return Err(Failure::wrong(format!("--amount {amount}: an amount goes from 0 to 1")));
            }
            smoothing.amount = amount;
        }
        if !self.mode.is_empty() {
            smoothing.modes.clone_from(&self.mode);
        }
        for (name, amount) in self.channel {
            if !(0.0..=1.0).contains(&amount) {
                return Err(Failure::wrong(format!("--channel {name}={amount}: an amount goes from 0 to 1")));
            }
            smoothing.amounts.retain(|(n, _)| *n != name);
            smoothing.amounts.push((name, amount));
        }
        if let Some(unwrap) = self.unwrap {
            smoothing.unwrap = if unwrap == "shortest" { Unwrap::Shortest } else { Unwrap::AsAuthored };
        }
        if let Some(overshoot) = self.overshoot {
            smoothing.overshoot = if overshoot == "allow" { Overshoot::Allow } else { Overshoot::Prevent };
        }
        if let Some(brake) = self.brake {
            smoothing.brake = brake == "on";
        }
        let file = file()?;
        if self.reset || smoothing != before {
            save(&smoothing)?;
        }
        if self.json {
            let mut document = document(&smoothing);
            document["kept_in"] = json!(file.display().to_string());
            return print_json(&document);
        }
        print(&format!("{}kept in {}\n", super::settings_text(&smoothing), file.display()))
    }
}

/// All of a smoothing as a document.
pub fn document(smoothing: &Smoothing) -> Value {
    let amounts: serde_json::Map<String, Value> =
        smoothing.amounts.iter().map(|(name, amount)| (name.clone(), json!(amount))).collect();
    json!({
        "on": smoothing.on,
        "amount": smoothing.amount,
        "amounts": amounts,
        "modes": smoothing.modes,
        "brake": smoothing.brake,
        "unwrap": if smoothing.unwrap == Unwrap::Shortest { "shortest" } else { "as_authored" },
        "overshoot": if smoothing.overshoot == Overshoot::Allow { "allow" } else { "prevent" },
    })
}

/// Where the settings are kept.
fn file() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || folder("HOME").or_else(|| folder("USERPROFILE"));
    let base = if let Some(folder) = folder("INBETWEEN_CONFIG") {
        return Ok(folder.join("camera.json"));
    } else if cfg!(windows) {
        folder("APPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|h| h.join("Library/Application Support"))
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| home().map(|h| h.join(".config")))
    };
    let base = base.ok_or_else(|| {
        Failure::wrong("no configuration folder is known; name one with the variable INBETWEEN_CONFIG")
    })?;
    Ok(base.join("inbetween").join("camera.json"))
}

/// The settings, those at first where none are kept.
///
/// # Errors
/// If the file cannot be understood: settings are not guessed.
pub fn load() -> Result<Smoothing, Failure> {
    let Ok(file) = file() else { return Ok(Smoothing::default()) };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Smoothing::default()),
        Err(error) => return Err(Failure::wrong(format!("{}: cannot be read: {error}", file.display()))),
    };
    parse(&text).ok_or_else(|| {
        Failure::wrong(format!(
            "{}: these are no settings; correct the file or write it anew with `inbetween camera settings --reset`",
            file.display()
        ))
    })
}

fn parse(text: &str) -> Option<Smoothing> {
    let document: Value = serde_json::from_str(text).ok()?;
    let amount = |v: &Value| v.as_f64().filter(|a| (0.0..=1.0).contains(a));
    let modes = document.get("modes")?.as_array()?;
    let modes: Option<Vec<String>> = modes.iter().map(|m| m.as_str().map(str::to_owned)).collect();
    let mut smoothing = Smoothing {
        on: document.get("on")?.as_bool()?,
        amount: amount(document.get("amount")?)?,
        modes: modes?,
        ..Smoothing::default()
    };
    // These may be missing: an older version did not keep them.
    if let Some(amounts) = document.get("amounts") {
        for (name, value) in amounts.as_object()? {
            smoothing.amounts.push((name.clone(), amount(value)?));
        }
    }
    if let Some(brake) = document.get("brake") {
        smoothing.brake = brake.as_bool()?;
    }
    smoothing.unwrap = match document.get("unwrap").map(|v| v.as_str()) {
        None | Some(Some("shortest")) => Unwrap::Shortest,
        Some(Some("as_authored")) => Unwrap::AsAuthored,
        Some(_) => return None,
    };
    smoothing.overshoot = match document.get("overshoot").map(|v| v.as_str()) {
        None | Some(Some("allow")) => Overshoot::Allow,
        Some(Some("prevent")) => Overshoot::Prevent,
        Some(_) => return None,
    };
    Some(smoothing)
}

fn save(smoothing: &Smoothing) -> Outcome {
    let file = file()?;
    let refused =
        |error: std::io::Error| Failure::wrong(format!("{}: cannot be kept: {error}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(refused)?;
    }
    crate::output::write_file(&file, format!("{:#}\n", document(smoothing)).as_bytes(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_understood_are_not_guessed() {
        assert!(parse("{}").is_none());
        assert!(parse(r#"{"on": true, "amount": 2, "modes": ["free"]}"#).is_none());
        assert!(parse(r#"{"on": "yes", "amount": 1, "modes": ["free"]}"#).is_none());
        let kept = parse(r#"{"on": true, "amount": 0.5, "modes": ["free", "orbit"]}"#).unwrap();
        assert!(kept.on && kept.amount == 0.5 && kept.modes == ["free", "orbit"]);
        assert!(parse(r#"{"on": true, "amount": 1, "modes": ["free"], "overshoot": "maybe"}"#).is_none());
    }

    #[test]
    fn all_settings_are_kept() {
        let smoothing = Smoothing {
            amounts: vec![("fov".to_owned(), 0.25)],
            modes: vec!["orbit".to_owned()],
            brake: false,
            unwrap: Unwrap::AsAuthored,
            overshoot: Overshoot::Prevent,
            ..Smoothing::amount(0.5)
        };
        assert_eq!(parse(&document(&smoothing).to_string()), Some(smoothing));
    }
}
