fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let shape = interval_queue_sim::Shape {
        shards: args[2] as usize,
        jobs: args[3] as usize,
        faults: if args[4] == 1 {
            interval_queue_sim::Fault::ALL.to_vec()
        } else if args[4] == 0 {
            vec![]
        } else {
            interval_queue_sim::Fault::ALL
                .iter()
                .enumerate()
                .filter(|(i, _)| args[4] >> (i + 1) & 1 == 1)
                .map(|(_, f)| *f)
                .collect()
        },
        faults_per_ten_jobs: 5,
    };
    println!("{:?}", shape.faults);
    let began = std::time::Instant::now();
    let mut total = (0u64, 0u64, 0u64, 0u64);
    let mut bad = std::collections::BTreeMap::new();
    for seed in args[0]..args[1] {
        let plan = interval_queue_sim::Plan::make(seed, &shape);
        let out = interval_queue_sim::run(&plan, Default::default());
        total.0 += out.slots;
        total.1 += out.started;
        total.2 += out.early;
        total.3 += out.inversions;
        if let Some(v) = out.violation {
            let e = bad.entry(v.promise).or_insert((0, Vec::new()));
            e.0 += 1;
            if e.1.len() < 3 {
                e.1.push(format!("seed {seed}: {v}"))
            }
            if args.len() > 5 {
                let out = interval_queue_sim::run(
                    &plan,
                    interval_queue_sim::Run { journal: true, ..Default::default() },
                );
                println!("{plan}");
                for e in out.journal {
                    println!("{e}");
                }
                return;
            }
        }
    }
    println!("{bad:#?} {total:?} {:?}", began.elapsed());
}
