//! Clips as tables.

use inbetween::{Axis, Binding, Clip, Curve, Property, Track, TrackData, ValueKind};
use inbetween_formats::{csv, demo, export};

/// Splits RFC 4180 into fields, by other code than what writes it.
fn parse(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (true, '"') if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            (_, '"') => quoted = !quoted,
            (false, ',') => row.push(std::mem::take(&mut field)),
            (false, '\r') => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (_, c) => field.push(c),
        }
    }
    assert!(!quoted && field.is_empty() && row.is_empty(), "the last line ends");
    rows
}

#[test]
fn every_key_of_every_component_is_a_row_that_reads_back_exactly() {
    let mut walk = demo::walk();
    walk.clips[0].name = "a \"walk\", slow\nly".to_owned();
    let rows = parse(&csv::write(&walk).unwrap());
    assert_eq!(
        rows[0].join(","),
        "clip,target,node,property,kind,component,time,value,span,in,out,in_s,out_s"
    );
    assert!(rows.iter().all(|r| r.len() == rows[0].len()));
    let mut next = rows[1..].iter();
    for track in &walk.clips[0].tracks {
        let curve = track.data.curves()[0];
        for (c, name) in "xyzw".chars().take(curve.width()).enumerate() {
            for key in 0..curve.len() {
                let row = next.next().unwrap();
                assert_eq!(row[0], walk.clips[0].name);
                assert_eq!(
                    (row[1].as_str(), row[5].as_str()),
                    (track.binding.target.as_str(), name.to_string().as_str())
                );
                assert_eq!(row[6].parse::<f64>().unwrap().to_bits(), curve.times()[key].to_bits());
                assert_eq!(row[7].parse::<f64>().unwrap().to_bits(), curve.value(key)[c].to_bits());
                assert_eq!(row[8], "linear");
            }
        }
    }
    assert!(next.next().is_none());
}

#[test]
fn tangents_constants_and_targets_that_are_no_nodes_have_their_columns() {
    let mut import = demo::camera();
    let mut clip = Clip::new("c", 0.0, 1.0).unwrap();
    let curve =
        Curve::hermite(ValueKind::Scalar, vec![0.0, 1.0], vec![5.0, 6.0], vec![0.5, 0.0], vec![0.0, 0.25]);
    let axes = vec![Axis::Constant(7.5), Axis::Curve(curve.unwrap())];
    let binding = Binding {
        target: "Paint, red".into(),
        node: None,
        property: Property::Other("material.uv".into()),
        path: None,
    };
    clip.tracks.push(Track::new(binding, TrackData::Axes { kind: ValueKind::Vector(2), axes }, vec![0.0; 2]));
    import.clips = vec![clip];
    let rows: Vec<String> = parse(&csv::write(&import).unwrap()).iter().map(|r| r.join("|")).collect();
    assert_eq!(rows[1], "c|Paint, red||material.uv|vector2|x||7.5|||||");
    assert_eq!(rows[2], "c|Paint, red||material.uv|vector2|y|0|5|hermite|0|0.5||");
    assert_eq!(rows[3], "c|Paint, red||material.uv|vector2|y|1|6|hermite|0.25|0||");
}

#[test]
fn frames_are_a_row_a_time_and_a_column_a_component() {
    let lamp = demo::lamp();
    let rows = parse(&csv::write_frames(&lamp.clips[0], &[0.0, 5.0]));
    let head =
        "time,Lamp.visible,Lamp.light.intensity,Lamp.light.color.r,Lamp.light.color.g,Lamp.light.color.b";
    assert_eq!(rows[0].join(","), head);
    assert_eq!(rows[1].join(","), "0,0,60,1,0.32,0.28");
    assert_eq!(rows[2].join(","), "5,1,900,1,0.74,0.42");
}

#[test]
fn what_a_table_leaves_out_is_said() {
    let (_, notes) = export(&demo::walk(), "walk.csv").unwrap();
    let said: String = notes.iter().map(|n| format!("{n}\n")).collect();
    assert!(said.contains("rest pose") && said.contains("marks") && said.contains("loops"), "{said}");
}
