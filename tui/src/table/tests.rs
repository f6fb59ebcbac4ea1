#[test] fn todo(){}
