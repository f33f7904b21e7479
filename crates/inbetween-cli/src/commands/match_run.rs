//! `match run`: a scripted path in, an animated character and a judgement out.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use inbetween::{
    Binding, Clip, Curve, FrameRate, LocalPose, Property, Skeleton, Track, TrackData, ValueKind,
};
use inbetween_match::{Blend, Controller, Judgement, Recording, Script, Settings, judge, record};
use serde_json::{Value, json};

use super::match_group::{clips_of, open, own_schema, pose_source};
use super::match_page;
use crate::input::ReadArgs;
use crate::output::{Failure, Outcome, print, print_json, write_file, write_import};
use crate::units;

/// Drive the character along a scripted path, and judge how well it follows
#[derive(Args)]
pub struct Run {
    /// The database
    #[arg(value_name = "FILE.ibm")]
    database: PathBuf,
    /// The files its clips are in, compressed ones (.ibc) too (default: those it was baked from)
    #[arg(value_name = "CLIPS")]
    files: Vec<PathBuf>,
    /// The path: a TOML file of steps with speed_m_s and heading_deg
    #[arg(long, value_name = "FILE.toml")]
    script: PathBuf,
    /// Write the animated character (.glb, .gltf)
    #[arg(short, long, value_name = "OUT.glb")]
    output: Option<PathBuf>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    /// Frames a second
    #[arg(long, value_name = "R", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    fps: u32,
    /// The feet to watch, by joint name (default: the feet of --leg, else joints whose names end in foot)
    #[arg(long, value_name = "JOINT", value_delimiter = ',')]
    feet: Vec<String>,
    /// A leg whose foot is held while it stands, as THIGH,SHIN,FOOT
    #[arg(long, value_name = "THIGH,SHIN,FOOT")]
    leg: Vec<String>,
    /// Hold no foot (default: each foot that is watched, with the two joints above it as its leg)
    #[arg(long, conflicts_with = "leg")]
    free_feet: bool,
    /// How jumps are smoothed
    #[arg(long, value_enum, default_value_t = BlendName::Inertialise)]
    blend: BlendName,
    /// Half-life of what is smoothed
    #[arg(long, value_name = "T", value_parser = units::seconds, default_value = "0.1")]
    blend_halflife: f64,
    /// Time between searches
    #[arg(long, value_name = "T", value_parser = units::seconds, default_value = "0.1")]
    search_every: f64,
    /// What is taken off the cost of the pose that plays
    #[arg(long, value_name = "COST")]
    bonus: Option<f32>,
    /// Keep the clips' root motion exact: the character is not led after the path
    #[arg(long)]
    exact_root: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum BlendName {
    Inertialise,
    Dead,
    None,
}

impl Run {
    /// Plays, writes and judges.
    pub fn run(self) -> Outcome {
        let database = Arc::new(open(&self.database)?);
        let schema = own_schema(&database, &self.database)?;
        let text = std::fs::read_to_string(&self.script)
            .map_err(|e| Failure::wrong(format!("{}: cannot be read: {e}", self.script.display())))?;
        let script = Script::read(&text, &schema)
            .map_err(|e| Failure::wrong(format!("{}: {e}", self.script.display())))?;
        let (clips, mut import) = clips_of(&database, &self.files, &self.read)?;
        let skeleton = clips[0].skeleton.clone();
        let source = pose_source(&database, &clips)?;
        let clips: Vec<Arc<Clip>> = clips.iter().map(|c| c.clip.clone()).collect();
        let mut settings = self.settings()?;
        let feet = self.feet(&settings, &skeleton)?;
        if settings.legs.is_empty() && !self.free_feet {
            settings.legs = feet.iter().filter_map(|foot| leg_above(&skeleton, foot)).collect();
        }
        let nodes: Vec<usize> = feet.iter().map(|f| skeleton.find(f)[0]).collect();
        let standing = settings.standing;
        let mut controller = Controller::new(database.clone(), &schema, source, settings, &script.at(0.0))?;
        let recording = record(&mut controller, &script, &nodes, self.fps)?;
        let judgement = judge(&recording, &database, &schema, &script, (&skeleton, &clips), &feet, standing)?;
        if let Some(output) = &self.output {
            import.clips = vec![animation(&recording, &skeleton, self.fps)?];
            let inputs: Vec<PathBuf> = database.clips().iter().map(|c| PathBuf::from(&c.file)).collect();
            let inputs: Vec<&std::path::Path> = inputs.iter().map(PathBuf::as_path).collect();
            write_import(output, &import, &inputs)?;
        }
        if let Some(page) = &self.page {
            let text = match_page::run(&database, &script, &recording, &judgement, &feet);
            write_file(page, text.as_bytes(), &[&self.script])?;
        }
        if self.json { print_json(&document(&judgement, &recording)) } else { print(&judgement.text()) }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings { search_every_s: self.search_every.max(0.0), ..Settings::default() };
        if self.exact_root {
            settings.steering = None;
        }
        if let Some(bonus) = self.bonus {
            settings.bonus = bonus;
        }
        let halflife_s = self.blend_halflife;
        if halflife_s <= 0.0 {
            return Err(Failure::wrong("--blend-halflife must be above 0; --blend none smooths nothing"));
        }
        settings.blend = match self.blend {
            BlendName::Inertialise => Blend::Inertialise { halflife_s },
            BlendName::Dead => Blend::DeadBlend { fade_s: 3.0 * halflife_s, halflife_s },
            BlendName::None => Blend::None,
        };
        for leg in &self.leg {
            let names: Vec<String> = leg.split(',').map(|n| n.trim().to_owned()).collect();
            let Ok(names) = <[String; 3]>::try_from(names) else {
                return Err(Failure::wrong(format!("--leg {leg:?} names no three joints: THIGH,SHIN,FOOT")));
            };
            settings.legs.push(names);
        }
        Ok(settings)
    }

    fn feet(&self, settings: &Settings, skeleton: &Skeleton) -> Result<Vec<String>, Failure> {
        let mut feet = self.feet.clone();
        if feet.is_empty() {
            feet = settings.legs.iter().map(|leg| leg[2].clone()).collect();
        }
        if feet.is_empty() {
            feet = skeleton
                .joints()
                .iter()
                .map(|j| j.name.clone())
                .filter(|n| n.to_lowercase().ends_with("foot"))
                .collect();
        }
        for foot in &feet {
            if skeleton.find(foot).len() != 1 {
                return Err(Failure::wrong(format!(
                    "--feet: the skeleton has not one joint {foot:?}; `inbetween info` lists them"
                )));
            }
        }
        if feet.is_empty() {
            return Err(Failure::wrong("no joint is called …foot; name those to watch with --feet"));
        }
        Ok(feet)
    }
}

/// The leg of a foot: the two joints above it, where there are two.
fn leg_above(skeleton: &Skeleton, foot: &str) -> Option<[String; 3]> {
    let chain = skeleton.chain(skeleton.find(foot)[0]);
    let name = |k: usize| chain.get(k).map(|node| skeleton.joints()[*node].name.clone());
    let leg = [name(2)?, name(1)?, name(0)?];
    leg.iter().all(|n| skeleton.find(n).len() == 1).then_some(leg)
}

/// The recording as a clip: a key a frame for every joint that moves.
fn animation(recording: &Recording, skeleton: &Skeleton, fps: u32) -> Result<Clip, Failure> {
    let wrong = |e: &dyn std::fmt::Display| Failure::wrong(format!("the recording: {e}"));
    let rate = FrameRate::hz(fps);
    let times: Arc<[f64]> = (0..recording.poses.len()).map(|k| rate.time_of(k as i64)).collect();
    let end = times.last().copied().unwrap_or(0.0);
    let mut clip = Clip::new("match run", 0.0, end).map_err(|e| wrong(&e))?;
    clip.rate = Some(rate);
    let poses = &recording.poses;
    for (node, joint) in skeleton.joints().iter().enumerate() {
        let moves = |f: &dyn Fn(&LocalPose) -> Vec<f64>| {
            let first = poses.first().map(f);
            poses.iter().any(|p| Some(f(p)) != first)
        };
        let translation = |p: &LocalPose| p.joints[node].translation.to_array().to_vec();
        let rotation = |p: &LocalPose| p.joints[node].rotation.to_array().to_vec();
        let rest = joint.rest.translation.to_array();
        if moves(&translation) || poses.first().is_some_and(|p| translation(p) != rest) {
            let rows = poses.iter().flat_map(translation).collect();
            let curve = Curve::linear(ValueKind::Vector(3), times.clone(), rows).map_err(|e| wrong(&e))?;
            let binding = Binding::node(node, &joint.name, Property::Translation);
            clip.tracks.push(Track::new(binding, TrackData::Curve(curve), rest.to_vec()));
        }
        let rest = joint.rest.rotation.to_array();
        if moves(&rotation) || poses.first().is_some_and(|p| rotation(p) != rest) {
            let mut rows: Vec<f64> = poses.iter().flat_map(rotation).collect();
            inbetween::edit::align_signs(&mut rows);
            let curve = Curve::linear(ValueKind::Rotation, times.clone(), rows).map_err(|e| wrong(&e))?;
            let binding = Binding::node(node, &joint.name, Property::Rotation);
            clip.tracks.push(Track::new(binding, TrackData::Curve(curve), rest.to_vec()));
        }
    }
    Ok(clip)
}

fn document(judgement: &Judgement, recording: &Recording) -> Value {
    let changes: Vec<Value> = judgement
        .changes
        .iter()
        .map(|c| json!({"at": c.at_s, "reached_90": c.reached_s, "followed": c.followed, "off_by": c.off_by}))
        .collect();
    let shares: serde_json::Map<String, Value> =
        judgement.shares.iter().map(|s| (s.channel.clone(), json!(s.share))).collect();
    let jumps: Vec<Value> = recording
        .frames
        .iter()
        .enumerate()
        .filter_map(|(k, f)| {
            let from = f.jumped_from?;
            Some(json!({"time": k as f64 * recording.dt, "from": from, "to": f.row, "cost": f.cost}))
        })
        .collect();
    json!({
        "seconds": judgement.seconds, "searches": judgement.searches,
        "jumps_per_second": judgement.jumps as f64 / judgement.seconds.max(1e-9),
        "foot_sliding_m_s": judgement.sliding_m_s, "clip_foot_sliding_m_s": judgement.clip_sliding_m_s,
        "feet_stood_s": judgement.stood_s,
        "place_gap_m": {"mean": judgement.place_gap_m.0, "max": judgement.place_gap_m.1},
        "turn_gap_rad": {"mean": judgement.turn_gap_rad.0, "max": judgement.turn_gap_rad.1},
        "velocity_gap_m_s": {"mean": judgement.velocity_gap_m_s.0, "max": judgement.velocity_gap_m_s.1},
        "changes": changes, "coverage": judgement.coverage, "entered": judgement.entered,
        "cost_shares": shares, "jumps": jumps, "warnings": judgement.warnings,
    })
}
