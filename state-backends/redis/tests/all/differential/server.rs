//! A real server that runs events, with a made-up clock and a made-up name.

use std::collections::BTreeMap;

use interval_queue_contract::{Command, QueueName, Reading};
use interval_queue_test_support::RedisServer;
use redis::{Connection, Pipeline, Value};

use interval_queue_redis::internals::{Keys, arguments, decode};

use super::{Event, Outcome, outcome, world::Accident};

/// Takes the last argument for the time. The name of the server is asked for every second time, else given.
const TEST_ENVIRONMENT: &str = "
local real = redis
local now = tonumber(table.remove(ARGV))
local server = ARGV[1]
local asks = string.sub(server, 1, 1) == '?'
if asks then
  ARGV[1] = '?'
end
local redis = {
  acl_check_cmd = real.acl_check_cmd,
  call = function(verb, ...)
    if verb == 'TIME' then
      return { string.format('%.0f', math.floor(now / 1000000)), string.format('%.0f', now % 1000000) }
    end
    return real.call(verb, ...)
  end,
  pcall = function(verb, ...)
    if verb == 'INFO' then
      return 'redis_version:7\\r\\nrun_id:' .. string.sub(server, 2) .. '\\r\\nuptime:1\\r\\n'
    end
    return real.pcall(verb, ...)
  end,
}
";
const RULES: &str = include_str!("../../../src/pace/rules.lua");
const EXPIRY: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

pub(super) struct Server {
    _process: RedisServer,
    connection: Connection,
    /// The hash of the script with its test environment.
    script: String,
    keys: [String; 2],
}

/// What the server said to an event, and what it then held.
pub(super) struct Answer {
    pub(super) reply: Outcome,
    pub(super) record: Outcome,
}

impl Server {
    pub(super) fn start() -> Self {
        let process = RedisServer::start();
        let mut connection = redis::Client::open(process.url()).unwrap().get_connection().unwrap();
        let source = format!("{TEST_ENVIRONMENT}{RULES}");
        let script = redis::cmd("SCRIPT").arg("LOAD").arg(source).query(&mut connection).unwrap();
        Self {
            _process: process,
            connection,
            script,
            keys: Keys::new("interval-queue").of(&QueueName::new("random").unwrap()),
        }
    }

    /// Plays a sequence from nothing.
    pub(super) fn run_events(&mut self, events: &[Event]) -> Vec<Answer> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("FLUSHALL").ignore();
        let refused: Vec<Option<Outcome>> =
            events.iter().map(|event| self.add(&mut pipeline, event)).collect();
        let values: Vec<Value> = pipeline.query(&mut self.connection).unwrap();
        let mut values = values.into_iter();
        let mut decode = |command: &Command| outcome(decode(command, values.next().unwrap()));
        let answers = events.iter().zip(refused).map(|(event, refused)| Answer {
            reply: refused.unwrap_or_else(|| decode(&event.command)),
            record: decode(&Command::Read),
        });
        answers.collect()
    }

    /// Adds an event. The answer, if it is known without asking the server.
    fn add(&self, pipeline: &mut Pipeline, event: &Event) -> Option<Outcome> {
        let copies = self.keys.each_ref().map(|key| format!("{key}:copy"));
        for (key, copy) in self.keys.iter().zip(&copies) {
            match event.before {
                Accident::Nothing => {}
                Accident::Lost => {
                    pipeline.del(key).ignore();
                }
                Accident::Copied => {
                    pipeline.del(copy).ignore();
                    pipeline.cmd("COPY").arg(key).arg(copy).ignore();
                }
                Accident::Rewound => {
                    pipeline.del(key).ignore();
                    pipeline.cmd("COPY").arg(copy).arg(key).ignore();
                }
            }
        }
        let refused = self.queue_command(pipeline, &event.command, &event.reading);
        self.queue_command(pipeline, &Command::Read, &event.reading);
        refused
    }

    fn queue_command(
        &self,
        pipeline: &mut Pipeline,
        command: &Command,
        reading: &Reading,
    ) -> Option<Outcome> {
        let arguments = match arguments(command, EXPIRY) {
            Ok(arguments) => arguments,
            Err(error) => return Some(outcome(Err(error))),
        };
        // As in a cluster, where the script finds out.
        let asks = reading.now.get().is_multiple_of(2);
        let server = if asks { format!("?{}", reading.incarnation) } else { reading.incarnation.clone() };
        let call = pipeline.cmd("EVALSHA").arg(&self.script).arg(2).arg(&self.keys).arg(server);
        for argument in &arguments {
            call.arg(argument.as_ref());
        }
        call.arg(reading.now.get());
        None
    }

    /// The index and the sums say what the presences say.
    pub(super) fn check_index(&mut self, seed: u64) {
        let [queue, index] = &self.keys;
        let mut pipeline = redis::pipe();
        pipeline.hgetall(queue).zrange_withscores(index, 0, -1);
        type Fields = BTreeMap<String, Vec<u8>>;
        let (mut fields, index): (Fields, BTreeMap<String, i64>) =
            pipeline.query(&mut self.connection).unwrap();
        let record = fields.remove("").unwrap_or_else(|| vec![0; 21 * 8]);
        let number =
            |bytes: &[u8], n: usize| f64::from_le_bytes(bytes[8 * n..][..8].try_into().unwrap()) as i64;
        let mut expected = BTreeMap::new();
        let mut running = 0;
        for (id, presence) in &fields {
            let head = number(presence, 0);
            if head >= 0 {
                expected.insert(id.clone(), head);
            }
            running += number(presence, 1);
            expected.insert(format!(" {id}"), -1 - number(presence, 2));
        }
        assert_eq!(index, expected, "INTERVAL_QUEUE_SEED={seed}");
        let sums = [number(&record, 17), number(&record, 18)];
        assert_eq!(sums, [running, fields.len() as i64], "running and shards, INTERVAL_QUEUE_SEED={seed}");
    }
}
