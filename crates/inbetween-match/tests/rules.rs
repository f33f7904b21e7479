//! What the search promises, each in its smallest case.

use inbetween_match::{
    ChannelColumns, Continuing, DO_NOT_USE, DatabaseOptions, Extra, Family, Filter, MatchError,
    MotionDatabase, Normalisation, Poses, Query, Scratch, Weights,
};

fn channel(name: &str, width: usize) -> ChannelColumns {
    ChannelColumns {
        name: name.into(),
        columns: (0..width).map(|c| c.to_string()).collect(),
        weight: 1.0,
        family: Family::Pose,
    }
}

fn database(values: &[f32], tags: &[u32]) -> MotionDatabase {
    let poses = Poses {
        channels: vec![channel("v", 1)],
        values: values.to_vec(),
        tags: tags.to_vec(),
        ..Poses::default()
    };
    let options = DatabaseOptions { normalisation: Normalisation::Raw, ..DatabaseOptions::default() };
    MotionDatabase::new(poses, options).unwrap()
}

fn best(database: &MotionDatabase, query: Query<'_>) -> Option<(u32, f32)> {
    database.search(&query, &mut Scratch::new()).unwrap().map(|m| (m.row, m.cost))
}

#[test]
fn a_pose_marked_do_not_use_is_not_stored() {
    let database = database(&[1.0, 1.1, 1.2], &[DO_NOT_USE | 2, 2, 2]);
    assert_eq!(database.len(), 2);
    assert_eq!(database.runs()[0].first_pose, 1);
    let found = best(&database, Query { features: &[1.0], ..Query::default() }).unwrap();
    assert_eq!(found.0, 0, "row 0 is pose 1");
}

#[test]
fn a_dropped_pose_cuts_its_run_in_two() {
    let database = database(&[0.0, 1.0, 2.0, 3.0], &[0, DO_NOT_USE, 0, 0]);
    let runs = database.runs();
    assert_eq!(runs.len(), 2);
    assert_eq!((runs[0].first_row, runs[0].rows, runs[0].first_pose), (0, 1, 0));
    assert_eq!((runs[1].first_row, runs[1].rows, runs[1].first_pose), (1, 2, 2));
    assert_eq!(runs[1].time_s(2), 3.0);
    assert_eq!(database.run_of(2), &runs[1]);
}

#[test]
fn when_no_pose_is_admitted_the_answer_is_none() {
    let database = database(&[1.0, 2.0], &[2, 2]);
    let filter = Filter { include: 8, ..Filter::default() };
    assert_eq!(best(&database, Query { features: &[1.0], filter, ..Query::default() }), None);
}

#[test]
fn exclude_holds_when_include_is_left_at_its_default() {
    let database = database(&[1.0, 2.0], &[4, 0]);
    let filter = Filter { exclude: 4, ..Filter::default() };
    assert_eq!(best(&database, Query { features: &[1.0], filter, ..Query::default() }), Some((1, 1.0)));
}

#[test]
fn a_pose_without_a_category_does_not_pass_where_one_is_asked_for() {
    let database = database(&[1.0, 2.0], &[0, 2]);
    let filter = Filter { include: 2, ..Filter::default() };
    assert_eq!(best(&database, Query { features: &[1.0], filter, ..Query::default() }), Some((1, 1.0)));
}

#[test]
fn equal_costs_go_to_the_lowest_row() {
    let database = database(&[5.0, 1.0, 3.0, 1.0, 3.0], &[]);
    assert_eq!(best(&database, Query { features: &[2.0], ..Query::default() }), Some((1, 1.0)));
}

#[test]
fn the_bonus_keeps_the_pose_that_plays() {
    let database = database(&[0.0, 1.0, 2.0], &[]);
    let staying = |bonus| Query {
        features: &[2.0],
        continuing: Some(Continuing { row: 1, bonus, ..Continuing::default() }),
        ..Query::default()
    };
    assert_eq!(best(&database, staying(0.5)), Some((2, 0.0)));
    assert_eq!(best(&database, staying(1.5)), Some((1, -0.5)));
}

#[test]
fn the_window_leaves_out_the_neighbours_but_not_the_row_itself() {
    let database = database(&[0.0, 1.0, 2.0, 3.0, 9.0], &[]);
    let query = Query {
        features: &[2.0],
        continuing: Some(Continuing { row: 1, ignore_rows: 2, ..Continuing::default() }),
        ..Query::default()
    };
    assert_eq!(best(&database, query), Some((1, 1.0)));
}

#[test]
fn before_the_minimum_dwell_is_over_the_answer_is_the_pose_that_plays() {
    let database = database(&[0.0, 1.0, 2.0], &[]);
    let at = |dwelt_s| Query {
        features: &[2.0],
        continuing: Some(Continuing { row: 0, dwelt_s, minimum_dwell_s: 0.3, ..Continuing::default() }),
        ..Query::default()
    };
    assert_eq!(best(&database, at(0.1)), Some((0, 4.0)));
    assert_eq!(best(&database, at(0.3)), Some((2, 0.0)));
}

#[test]
fn extra_costs_of_either_sign_take_part_in_the_choice() {
    let database = database(&[0.0, 1.0, 2.0], &[0, 1, 2]);
    let query = |extra| Query { features: &[2.0], extra, ..Query::default() };
    let rows = Extra { rows: &[-10.0, 0.0, 0.0], ..Extra::default() };
    assert_eq!(best(&database, query(rows)), Some((0, -6.0)));
    let tags = Extra { tags: &[(2, 5.0)], ..Extra::default() };
    assert_eq!(best(&database, query(tags)), Some((1, 1.0)));
}

#[test]
fn a_weight_of_zero_takes_a_column_out() {
    let poses = Poses {
        channels: vec![channel("a", 1), channel("b", 1)],
        values: vec![0.0, 9.0, 1.0, 0.0],
        ..Poses::default()
    };
    let options = DatabaseOptions { normalisation: Normalisation::Raw, ..DatabaseOptions::default() };
    let database = MotionDatabase::new(poses, options).unwrap();
    let query = |weights| Query { features: &[0.0, 0.0], weights, ..Query::default() };
    assert_eq!(best(&database, query(Weights::Schema)), Some((1, 1.0)));
    assert_eq!(best(&database, query(Weights::Columns(&[1.0, 0.0]))), Some((0, 0.0)));
}

#[test]
fn the_weight_of_a_channel_is_divided_over_its_columns() {
    let poses = Poses {
        channels: vec![channel("wide", 4), channel("narrow", 1)],
        values: vec![0.0; 5],
        ..Poses::default()
    };
    let database = MotionDatabase::new(poses.clone(), DatabaseOptions::default()).unwrap();
    assert_eq!(database.column_weights(&Weights::Schema).unwrap(), [0.25, 0.25, 0.25, 0.25, 1.0]);
    let plain = DatabaseOptions { balance: false, ..DatabaseOptions::default() };
    let database = MotionDatabase::new(poses, plain).unwrap();
    assert_eq!(database.column_weights(&Weights::Schema).unwrap(), [1.0; 5]);
}

#[test]
fn numbers_that_cannot_be_compared_are_refused_by_name() {
    let database = database(&[0.0, 1.0], &[]);
    let ask = |query: Query<'_>| database.search(&query, &mut Scratch::new()).unwrap_err();
    let nan = ask(Query { features: &[f32::NAN], ..Query::default() });
    assert!(matches!(nan, MatchError::BadQuery { column: 0, .. }), "{nan}");
    let far = ask(Query { features: &[1e30], ..Query::default() });
    assert!(matches!(far, MatchError::BadQuery { .. }), "{far}");
    let long = ask(Query { features: &[0.0, 0.0], ..Query::default() });
    assert_eq!(long, MatchError::QueryLength { expected: 1, found: 2 });
    for weight in [-1.0, f32::NAN, f32::INFINITY, 1e-20] {
        let error = ask(Query { features: &[0.0], weights: Weights::Columns(&[weight]), ..Query::default() });
        assert!(matches!(error, MatchError::BadWeight { .. }), "{weight}: {error}");
    }
    let row = ask(Query {
        features: &[0.0],
        continuing: Some(Continuing { row: 2, ..Continuing::default() }),
        ..Query::default()
    });
    assert_eq!(row, MatchError::NoSuchRow { row: 2, rows: 2 });
}

#[test]
fn a_database_without_a_feature_or_a_row_is_refused() {
    let none = MotionDatabase::new(Poses::default(), DatabaseOptions::default()).unwrap_err();
    assert!(none.to_string().contains("no feature"), "{none}");
    let poses = Poses {
        channels: vec![channel("v", 1)],
        values: vec![1.0],
        tags: vec![DO_NOT_USE],
        ..Poses::default()
    };
    let empty = MotionDatabase::new(poses, DatabaseOptions::default()).unwrap_err();
    assert!(empty.to_string().contains("no row"), "{empty}");
    let poses = Poses { channels: vec![channel("v", 1)], values: vec![1.0, f32::NAN], ..Poses::default() };
    let bad = MotionDatabase::new(poses, DatabaseOptions::default()).unwrap_err();
    assert!(matches!(bad, MatchError::BadFeature { row: 1, column: 0, .. }), "{bad}");
}
