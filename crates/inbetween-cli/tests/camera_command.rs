//! `inbetween camera` from a shell: what it writes, says and remembers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for each test, with settings of its own; gone afterwards.
struct Room(PathBuf);

impl Room {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inbetween-camera-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn run(&self, args: &[&str]) -> Output {
        self.inbetween(&[&["camera"], args].concat())
    }

    fn inbetween(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inbetween"));
        command.current_dir(&self.0).env("INBETWEEN_CONFIG", self.0.join("config")).args(args);
        command.output().unwrap()
    }

    /// Standard output of a call that must succeed.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// Standard error of a call that must be refused.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PATH: &str = "time,x,y,z,yaw,fov,mode\n0,0,2,0,1,90,free\n1,2,2,1,-303,40,free\n3,0,2,4,20,40,free\n4,1,2,5,30,60,board\n6,9,2,5,30,60,board\n";

#[test]
fn smoothing_is_off_until_it_is_turned_on_and_stays_on() {
    let room = Room::new("settings");
    room.write("p.csv", PATH);
    let left =
        |v: &Value| (v["settings"]["on"].as_bool().unwrap(), v["modes"][0]["smoothed"].as_u64().unwrap());
    assert_eq!(left(&room.json(&["status", "p.csv", "--json"])), (false, 0));
    room.ok(&["settings", "--on", "--amount", "0.5"]);
    let status = room.json(&["status", "p.csv", "--json"]);
    assert_eq!(left(&status), (true, 2));
    assert_eq!(status["settings"]["amount"], 0.5);
    assert_eq!(status["modes"][1]["mode"], "board");
    assert_eq!((&status["modes"][1]["smoothed"], &status["modes"][1]["left"]), (&0.into(), &1.into()));
    assert_eq!(status["modes"][0]["cuts"], 1);
    assert_eq!(status["not_matching"], 0);
    room.ok(&["settings", "--off"]);
    assert_eq!(left(&room.json(&["status", "p.csv", "--json"])), (false, 0));
    assert!(room.refused(&["settings", "--amount", "3"]).contains("from 0 to 1"));
    room.write("config/camera.json", "nonsense");
    assert!(room.refused(&["status", "p.csv"]).contains("--reset"));
    room.ok(&["settings", "--reset"]);
    assert!(room.ok(&["settings"]).contains("smoothing off"));
    room.ok(&[
        "settings",
        "--on",
        "--channel",
        "fov=0.25",
        "--overshoot",
        "prevent",
        "--unwrap",
        "as-authored",
    ]);
    room.ok(&["settings", "--brake", "off"]);
    let kept = &room.json(&["status", "p.csv", "--json"])["settings"];
    let expected = serde_json::json!({"on": true, "amount": 1.0, "amounts": {"fov": 0.25}, "modes": ["free"],
        "brake": false, "unwrap": "as_authored", "overshoot": "prevent"});
    assert_eq!(*kept, expected);
    assert!(room.refused(&["settings", "--channel", "fov=2"]).contains("from 0 to 1"));
}

#[test]
fn smooth_writes_the_path_and_reports_what_changes() {
    let room = Room::new("smooth");
    room.write("p.csv", PATH);
    let document = room.json(&["smooth", "p.csv", "-o", "s.json", "--report", "s.html", "--json"]);
    assert_eq!(document["settings"]["on"], true);
    let jump = |when: &str| document[when]["max_acceleration_jump_m_s2"].as_f64().unwrap();
    assert!(jump("after") < 1e-12 && jump("before") > 1.0, "{document}");
    let zoom = document["overshoot"].as_array().unwrap().iter().find(|o| o["channel"] == "fov").unwrap();
    assert!(zoom["past"].as_f64().unwrap() > 0.1);
    let page = room.read("s.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && page.contains("fov runs"));
    assert!(!page.contains("http://") && !page.contains("<script"), "the page stands alone");
    room.ok(&["smooth", "p.csv", "--report", "s.svg"]);
    assert!(room.read("s.svg").contains("from above"));
    room.ok(&["smooth", "p.csv", "--report", "s.png"]);
    assert!(std::fs::read(room.0.join("s.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(room.refused(&["smooth", "p.csv", "--report", "s.pdf"]).contains(".html"));
    // What was written is flown the same without a word.
    let status = room.json(&["status", "s.json", "--json"]);
    assert_eq!(status["settings"]["on"], true);
    assert_eq!(status["modes"][0]["smoothed"], 2);
    let held = room.json(&["smooth", "p.csv", "--no-overshoot", "--json"]);
    assert!(
        held["overshoot"].as_array().unwrap().iter().all(|o| o["past"].as_f64().unwrap() < 1e-10),
        "{held}"
    );
    assert!(room.refused(&["smooth", "p.csv", "-o", "p.csv"]).contains("never overwritten"));
    assert!(room.refused(&["smooth", "p.csv", "--amount", "2"]).contains("from 0"));
    assert!(room.refused(&["smooth", "p.csv", "--channel", "roll=0.5"]).contains("no channel roll"));
    assert!(room.refused(&["smooth", "p.csv", "-o", "p.mp4"]).contains("--format"));
    let said = room.refused(&["smooth", "p.csv", "--mode", "bord"]);
    assert!(said.contains("--mode bord") && said.contains("free, board"), "{said}");
    assert!(
        room.ok(&["smooth", "p.csv", "--mode", "board"]).contains("mode board: 1 segments built, 1 smoothed")
    );
    let output = room.run(&["export", "p.csv", "-o", "p.xml"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("--fps writes frames that play as here"));
}

#[test]
fn every_format_takes_the_path_and_gives_it_back() {
    let room = Room::new("formats");
    room.write("p.csv", PATH);
    for name in ["p.json", "p.xml", "p.tum", "q.csv", "p.glb", "p.gltf"] {
        room.ok(&["export", "p.csv", "-o", name, "--on"]);
        let back = room.json(&["status", name, "--json"]);
        assert!(back["keys"].as_u64().unwrap() >= 5, "{name}: {back}");
        room.ok(&["import", name, "-o", "back.json"]);
        let back: Value = serde_json::from_str(&room.read("back.json")).unwrap();
        let last = back["keys"].as_array().unwrap().last().unwrap();
        assert!((last["position"][0].as_f64().unwrap() - 9.0).abs() < 1e-5, "{name}: {last}");
    }
    room.ok(&["export", "p.csv", "-o", "n.json", "--format", "nerfstudio", "--on", "--fps", "30"]);
    let frames: Value = serde_json::from_str(&room.read("n.json")).unwrap();
    assert_eq!(frames["camera_path"].as_array().unwrap().len(), 181);
}

#[test]
fn slots_are_given_for_every_segment_and_channel() {
    let room = Room::new("slots");
    room.write("p.csv", "time,x\n0,1\n2,5\n");
    let slots = room.json(&["slots", "p.csv", "--on", "--json"]);
    assert_eq!(slots["segments"][0]["channels"]["x"]["slots"], serde_json::json!([-3.0, 1.0, 5.0, 9.0]));
    assert_eq!(slots["segments"][0]["channels"]["x"]["own_slots"], serde_json::json!([1.0, 1.0, 5.0, 5.0]));
}

#[test]
fn an_even_speed_is_written_as_frames() {
    let room = Room::new("even");
    room.write("p.csv", "time,x\n0,0\n1,1\n4,10\n");
    room.ok(&["smooth", "p.csv", "-o", "e.csv", "--even-speed", "--fps", "10"]);
    let frames = room.read("e.csv");
    let places: Vec<f64> =
        frames.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(places.len(), 41);
    for pair in places.windows(2) {
        assert!((pair[1] - pair[0] - 0.25).abs() < 1e-3, "{pair:?}");
    }
}

#[test]
fn an_even_speed_is_written_as_keys_where_the_format_holds_them() {
    let room = Room::new("even-keys");
    room.write("p.csv", PATH);
    for name in ["e.json", "e.glb"] {
        let output = room.run(&["export", "p.csv", "-o", name, "--on", "--even-speed", "--key-error", "2mm"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("keys on the new clock"), "{said}");
        // The keys alone, sampled, are the frames of the retimed path.
        room.ok(&["export", name, "-o", "keys.csv", "--fps", "20"]);
        room.ok(&["export", "p.csv", "-o", "frames.csv", "--on", "--even-speed", "--fps", "20"]);
        let rows = |file: &str| -> Vec<Vec<f64>> {
            let text = room.read(file);
            text.lines().skip(1).map(|l| l.split(',').take(4).map(|n| n.parse().unwrap()).collect()).collect()
        };
        let (keys, frames) = (rows("keys.csv"), rows("frames.csv"));
        assert_eq!(keys.len(), frames.len());
        // A clip read back is a path through its keys, whose curves are another matter.
        if name == "e.json" {
            for (a, b) in keys.iter().zip(&frames) {
                for k in 0..4 {
                    assert!((a[k] - b[k]).abs() < 2.1e-3, "{name}: {a:?} {b:?}");
                }
            }
        }
    }
    let output = room.run(&["export", "p.csv", "-o", "e.xml", "--on", "--even-speed"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("60 frames a second"));
}

#[test]
fn a_follow_shot_is_exported_in_the_world() {
    let room = Room::new("follow");
    room.write("p.csv", "time,x,y,z\n0,0,1,5\n2,0,1,5\n");
    room.write("subject.csv", "time,x,y,z\n0,0,0,0\n2,8,0,0\n");
    room.ok(&[
        "export",
        "p.csv",
        "-o",
        "f.csv",
        "--fps",
        "1",
        "--follow",
        "subject.csv",
        "--look-at",
        "0,0,0",
    ]);
    let frames = room.read("f.csv");
    let middle: Vec<&str> = frames.lines().nth(2).unwrap().split(',').collect();
    assert_eq!(middle[..4], ["1", "4", "1", "5"]);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let room = Room::new("bad");
    room.write("equal.csv", "time,x\n0,0\n1,1\n1,2\n");
    assert!(room.refused(&["status", "equal.csv"]).contains("same time"));
    room.write("words.csv", "time,x\n0,zero\n");
    assert!(room.refused(&["status", "words.csv"]).contains("line 2, column x"));
    room.write("none.bin", "\u{0}\u{1}");
    assert!(room.refused(&["status", "none.bin"]).contains("none.bin"));
    assert!(room.refused(&["status", "absent.csv"]).contains("cannot be read"));
    assert!(!Path::new("absent.csv").exists());
}

#[test]
fn plot_draws_a_camera_path_with_the_pictures_of_the_report() {
    let room = Room::new("plot");
    room.write("p.csv", PATH);
    room.ok(&["smooth", "p.csv", "-o", "s.json", "--report", "s.svg"]);
    let plot = |args: &[&str]| {
        let output = room.inbetween(&[&["plot"], args].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(plot(&["s.json", "-o", "plot.svg"]).0, Some(0));
    let (report, drawn) = (room.read("s.svg").replace("p.csv", "s.json"), room.read("plot.svg"));
    assert_eq!(report, drawn);
    for words in
        ["from above", "from the side", "speed", "acceleration", "fov", "replay curve", "past its keys"]
    {
        assert!(drawn.contains(words), "{words}");
    }
    // Not smoothed there is nothing to compare with; over another file there is.
    assert_eq!(plot(&["p.csv", "-o", "plain.svg"]).0, Some(0));
    assert!(room.read("plain.svg").contains("smoothing is off"));
    assert_eq!(plot(&["p.csv", "--against", "s.json", "-o", "both.png"]).0, Some(0));
    assert!(std::fs::read(room.0.join("both.png")).unwrap().starts_with(b"\x89PNG"));
    let (code, said) = plot(&["p.csv", "--target", "x", "-o", "plot.svg"]);
    assert!(code == Some(2) && said.contains("drawn whole"), "{said}");
    let (code, said) = plot(&["p.csv", "--against", "none.csv", "-o", "plot.svg"]);
    assert!(code == Some(2) && said.contains("none.csv: cannot be read"), "{said}");
}

/// Rows of the path exported as frames, by column name.
fn frames(room: &Room, args: &[&str]) -> Vec<std::collections::BTreeMap<String, f64>> {
    room.ok(&[&["export", "p.csv", "-o", "f.csv", "--fps", "10", "--on"], args].concat());
    let text = room.read("f.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let numbers = names.iter().zip(line.split(','));
        numbers.filter_map(|(n, v)| Some(((*n).to_owned(), v.parse().ok()?))).collect()
    };
    lines.map(row).collect()
}

#[test]
fn every_way_of_flying_can_be_asked_for_from_a_shell() {
    let room = Room::new("ways");
    room.write(
        "p.csv",
        "time,x,y,z,yaw,pitch,roll,fov\n0,0,2,0,0,0,10,50\n1,2,2,1,-20,-5,10,40\n3,6,2,4,20,0,-10,40\n4,7,3,5,30,0,0,60\n",
    );
    room.write("target.csv", "time,x,y,z\n0,0,0,-9\n4,8,0,-9\n");
    let plain = frames(&room, &[]);
    let rows = |args: &[&str]| frames(&room, args);
    let same = |a: f64, b: f64| (a - b).abs() < 1e-9;

    // Straight at an even pace from key 1 to key 2.
    let straight = rows(&["--straight", "1"]);
    assert!(same(straight[20]["x"], 4.0) && same(straight[20]["z"], 2.5) && !same(plain[20]["x"], 4.0));
    // A held zoom stays held.
    let held = rows(&["--no-overshoot"]);
    assert!((10..=30).all(|i| same(held[i]["fov"], 40.0)) && plain[20]["fov"] < 39.0);
    // One channel on the replay curve: still at key 1, on to key 2 at (0 + 20)/2 a second, so
    // 2 s · 10 / 8 below it in the middle.
    assert!(same(rows(&["--channel", "fov=0"])[20]["fov"], 37.5));
    // Back at the first key two seconds on.
    let closed = rows(&["--close", "2"]);
    assert!(closed.len() == 61 && same(closed[60]["x"], 0.0) && same(closed[60]["roll"], 10.0));
    // A key in the middle changes nothing.
    let added = rows(&["--insert", "2.2"]);
    assert!(plain.iter().zip(&added).all(|(a, b)| a.iter().all(|(n, v)| same(*v, b[n]))));
    // No roll.
    assert!(rows(&["--level"]).iter().all(|r| r["roll"].abs() < 1e-9));
    // A place, and something that moves, in the middle of the frame.
    for (args, at) in [
        (["--look-at", "0,0,-9"], [0.0; 41]),
        (["--look-at-path", "target.csv"], std::array::from_fn(|i| 0.2 * i as f64)),
    ] {
        for (i, row) in rows(&args).iter().enumerate() {
            let (x, z) = (at[i] - row["x"], -9.0 - row["z"]);
            assert!((row["yaw"].to_radians().tan() - x / z).abs() < 1e-9, "{args:?} {row:?}");
        }
    }
    // Carried along by what moves.
    let carried = rows(&["--follow", "target.csv"]);
    assert!(same(carried[40]["x"], 15.0) && same(carried[40]["z"], -4.0));
    // Even speed, eased, in a time of its own, and with turning held back.
    let even = rows(&["--even-speed", "--duration", "8", "--ease-in", "1", "--ease-out", "1"]);
    let pace = |i: usize| {
        ["x", "y", "z"].iter().map(|n| (even[i + 1][*n] - even[i][*n]).powi(2)).sum::<f64>().sqrt()
    };
    assert!(even.len() == 81 && pace(0) < 0.05 * pace(40) && (pace(30) / pace(50) - 1.0).abs() < 0.02);
    let held_back = rows(&["--even-speed", "--max-turning", "10deg"]);
    assert!(held_back.len() > 41, "70 degrees at 10 a second take 7 s");
}

#[test]
fn slots_are_timed_as_asked() {
    let room = Room::new("slot-timing");
    room.write("p.csv", "time,x\n0,0\n4,8\n5,9\n");
    let own = |timing: &str| {
        let slots = room.json(&["slots", "p.csv", "--timing", timing, "--json"]);
        slots["segments"][1]["channels"]["x"]["own_slots"].clone()
    };
    // The neighbour 4 s before, moved to where it would be 1 s before: 8 − 8/4.
    assert_eq!(own("true-time"), serde_json::json!([6.0, 8.0, 9.0, 9.0]));
    assert_eq!(own("raw"), serde_json::json!([0.0, 8.0, 9.0, 9.0]));
    assert!(room.ok(&["slots", "p.csv"]).starts_with("segment\tchannel\tp0"));
}
