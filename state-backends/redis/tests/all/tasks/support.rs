//! What the tests say to stored tasks.

use std::time::Duration;

use interval_queue_redis::{RedisStore, RedisTasks};
pub(crate) use interval_queue_task_conformance::hand::*;
use interval_queue_task_contract::{Command, Read, Reply, State, TaskStore};
use interval_queue_test_support::RedisServer;

pub(crate) async fn connect(server: &RedisServer) -> RedisTasks {
    let builder = RedisStore::builder(server.url()).unwrap().timeout(Duration::from_secs(20));
    RedisTasks::on(&builder.connect().await.unwrap())
}

/// All that the server holds, as one text.
pub(crate) fn everything(server: &RedisServer) -> Vec<String> {
    let mut keys = server.command(&["KEYS", "*"]);
    keys.sort();
    // The fields of a hash come in no order that stays.
    let script = "local kind, words = redis.call('TYPE', KEYS[1]).ok, {}
        if kind == 'hash' then
          local all = redis.call('HGETALL', KEYS[1])
          for n = 1, #all, 2 do words[#words + 1] = redis.sha1hex(all[n]) .. redis.sha1hex(all[n + 1]) end
          table.sort(words)
        elseif kind == 'zset' then
          words = redis.call('ZRANGE', KEYS[1], 0, -1)
        end
        return kind .. redis.sha1hex(table.concat(words))";
    let dump = |key: &String| format!("{key} {:?}", server.command(&["EVAL", script, "1", key]));
    keys.iter().map(dump).collect()
}

/// What is counted of the index and listed of the ids says what is there.
pub(crate) fn is_indexed(server: &RedisServer, rows: &str) {
    let script = "local rows, index = KEYS[1], KEYS[1] .. ':index'
        local wrong = {}
        local entries = cmsgpack.unpack(redis.call('HGET', rows, 'entries'))
        for n = 33, 125 do
          local letter = string.char(n)
          local there = redis.call('ZLEXCOUNT', index, '[' .. letter, '(' .. string.char(n + 1))
          if not string.find('rleIEW', letter, 1, true) and there ~= (entries[letter] or 0) then
            wrong[#wrong + 1] = letter .. ' ' .. there .. ' ' .. (entries[letter] or 0)
          end
        end
        local ids, before, pages = 0, '', 0
        for _, letter in ipairs({ 'I', 'r', 'l', 'e' }) do
          before = ''
          for _, page in ipairs(redis.call('ZRANGEBYLEX', index, '[' .. letter, '(' .. string.char(string.byte(letter) + 1))) do
            local listed, size = redis.call('HGET', rows, '#' .. page), ({ I = 23, r = 35, l = 16, e = 23 })[letter]
            local group = string.sub(page, 1, -size - 1)
            pages = pages + 1
            if not listed or listed == '' or #listed > 250 or #listed % size > 0 then
              wrong[#wrong + 1] = 'page'
            end
            for at = 1, #(listed or ''), size do
              local entry = group .. string.sub(listed, at, at + size - 1)
              if entry <= before or redis.call('HEXISTS', rows .. ':tasks', string.sub(entry, -16)) == 0
                or entry < page and string.sub(page, -size) ~= string.rep('\\0', size)
              then
                wrong[#wrong + 1] = 'entry of ' .. letter
              end
              local levels = letter == 'r'
                and (redis.call('HGET', rows, 'levels:' .. string.sub(group, 2, -2)) or '\\161\\128')
              if levels and not string.find(levels, string.sub(entry, #group + 1, #group + 1), 2, true) then
                wrong[#wrong + 1] = 'level'
              end
              ids, before = ids + (letter == 'I' and 1 or 0), entry
            end
          end
        end
        for _, field in ipairs(redis.call('HKEYS', rows)) do
          pages = pages - (string.sub(field, 1, 1) == '#' and 1 or 0)
        end
        if pages ~= 0 then
          wrong[#wrong + 1] = pages .. ' pages'
        end
        if ids ~= redis.call('HLEN', rows .. ':tasks') - 1 then
          wrong[#wrong + 1] = ids .. ' ids'
        end
        return wrong";
    assert_eq!(server.command(&["EVAL", script, "1", rows]).join(", "), "");
}

/// Whether the numbers say what the tasks say.
pub(crate) async fn is_sound(store: &RedisTasks) {
    let tasks = all(store, &mail()).await;
    let reply = store.apply(&mail(), Command::Read(Read::Overview)).await.unwrap();
    let Reply::Overview(overview) = reply else { panic!("{reply:?}") };
    for state in State::ALL {
        let there = tasks.iter().filter(|stored| stored.task.state == state).count() as u64;
        let is_so =
            |counted| matches!(counted, interval_queue_task_contract::Counted::Now(of) if of == state);
        let counted: u64 = overview.counts.iter().filter(|count| is_so(count.1)).map(|count| count.2).sum();
        assert_eq!(counted, there, "{state}");
    }
}
