//! The indexes of tasks, each declared once. Stores in memory keep their [`Entries`], stores in SQL
//! create them from [`declared`]; [`Rows::look`](crate::Rows::look) reads all alike.

use std::collections::BTreeSet;

use interval_queue_contract::Micros;

use crate::{Key, Kind, Rank, State, Task, TaskId, WorkerId};

/// An index of tasks. A task without a value for each column and the order has no entry.
pub trait Index: 'static {
    /// The columns that a lookup fixes.
    type Columns: Clone + Ord + 'static;
    /// The order of tasks with equal columns.
    type Order: Sort + 'static;
    /// Its place in [`declared`].
    const NUMBER: usize;
    /// The entry of a task. `None`: the index does not include the task.
    fn entry(task: &Task) -> Option<(Self::Columns, Self::Order)>;
    /// The task's place in the order, whether or not the index includes it.
    fn order(task: &Task) -> Option<Self::Order>;
    /// All entries.
    fn all(entries: &Entries) -> &BTreeSet<(Self::Columns, Self::Order)>;
    /// The values of the columns as texts, which SQL converts.
    fn values(columns: &Self::Columns) -> Vec<String>;
}

/// A declaration in SQL. Each index begins with the queue.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name after that of the table.
    pub name: &'static str,
    /// The columns that a lookup fixes.
    pub columns: &'static [&'static str],
    /// The columns after these. Empty: lookups need no order.
    pub order: &'static [&'static str],
    /// The condition of a partial index. Empty: none.
    pub condition: String,
}

impl Declared {
    /// The condition after another one.
    pub fn and(&self) -> String {
        if self.condition.is_empty() { String::new() } else { format!(" AND {}", self.condition) }
    }

    /// SQL that creates the index unless it exists.
    pub fn creation(&self) -> String {
        let Self { name, columns, order, condition } = self;
        let columns = [&["queue"], *columns, *order].concat().join(", ");
        let condition = if condition.is_empty() { String::new() } else { format!(" WHERE {condition}") };
        format!(
            "CREATE INDEX IF NOT EXISTS interval_queue_task_{name} ON interval_queue_task ({columns}){condition};\n"
        )
    }
}

/// The order of an index, which ends with the id of the task.
pub trait Sort: Copy + Ord {
    /// Before all others.
    const FIRST: Self;
    /// After all others.
    const LAST: Self;
    /// The last one at this instant; without instants, the last of all.
    fn last_at(instant: Micros) -> Self;
    /// Its instant, if it has one.
    fn instant(self) -> Micros;
    /// The id of the task.
    fn id(self) -> TaskId;
}

impl Sort for TaskId {
    const FIRST: Self = Self::FIRST;
    const LAST: Self = Self::LAST;
    fn last_at(_: Micros) -> Self {
        Self::LAST
    }
    fn instant(self) -> Micros {
        Micros::ZERO
    }
    fn id(self) -> TaskId {
        self
    }
}

impl Sort for (Micros, TaskId) {
    const FIRST: Self = (Micros::ZERO, TaskId::FIRST);
    const LAST: Self = (Micros::MAX, TaskId::LAST);
    fn last_at(instant: Micros) -> Self {
        (instant, TaskId::LAST)
    }
    fn instant(self) -> Micros {
        self.0
    }
    fn id(self) -> TaskId {
        self.1
    }
}

impl Sort for Rank {
    const FIRST: Self = Self::first(i64::MIN);
    const LAST: Self = Self::last(i64::MAX);
    fn last_at(instant: Micros) -> Self {
        Self::last(i64::try_from(instant.get()).unwrap_or(i64::MAX))
    }
    fn instant(self) -> Micros {
        Micros::new(self.at.unsigned_abs())
    }
    fn id(self) -> TaskId {
        self.id
    }
}

macro_rules! holds {
    ($x:ident state $state:ident) => { $x.state == State::$state };
    ($x:ident is $flag:ident) => { $x.$flag };
    ($x:ident not $flag:ident) => { !$x.$flag };
    ($x:ident has $field:ident) => { $x.$field.is_some() };
    ($x:ident no $field:ident) => { $x.$field.is_none() };
    ($x:ident any $(($($one:tt)*))*) => { $(holds!($x $($one)*))||* };
}

macro_rules! sql {
    (state $state:ident) => { format!("state = '{}'", State::$state) };
    (is $flag:ident) => { stringify!($flag).to_owned() };
    (not $flag:ident) => { concat!("NOT ", stringify!($flag)).to_owned() };
    (has $field:ident) => { concat!(stringify!($field), " IS NOT NULL").to_owned() };
    (no $field:ident) => { concat!(stringify!($field), " IS NULL").to_owned() };
    (any $(($($one:tt)*))*) => { format!("({})", [$(sql!($($one)*)),*].join(" OR ")) };
}

#[rustfmt::skip]
macro_rules! text {
    ($column:ident bool) => { u8::from(*$column).to_string() };
    ($column:ident $type:ident) => { $column.to_string() };
}

#[rustfmt::skip]
macro_rules! value {
    ($x:ident unique_name $type:ident) => { $x.unique.as_ref()?.name.clone() };
    ($x:ident $column:ident $type:ident) => { Option::<$type>::from($x.$column.clone())? };
}

#[rustfmt::skip]
macro_rules! order {
    (type rank $at:ident) => { Rank };
    (type time $at:ident) => { (Micros, TaskId) };
    (type $id:ident) => { TaskId };
    (sql rank $at:ident) => { &[stringify!($at), "added", "position", "id"] };
    (sql time $at:ident) => { &[stringify!($at), "id"] };
    (sql id) => { &["id"] };
    (sql none) => { &[] };
    ($x:ident rank due) => { $x.order() };
    ($x:ident rank not_before) => { $x.start_order() };
    ($x:ident rank line) => { $x.key_order() };
    ($x:ident time $at:ident) => { (Option::<Micros>::from($x.$at)?, $x.id) };
    ($x:ident $id:ident) => { $x.id };
}

macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident = $field:ident ($($column:ident: $type:ident),*) by ($($order:tt)*)
        where $(($($condition:tt)*))*;)*
    ) => {
        $($(#[$doc])* #[derive(Clone, Copy, Debug)] pub struct $name;

        impl Index for $name {
            type Columns = ($($type,)*);
            type Order = order!(type $($order)*);
            const NUMBER: usize = Numbers::$name as usize;

            fn entry(x: &Task) -> Option<(Self::Columns, Self::Order)> {
                let is_included = true $(&& (holds!(x $($condition)*)))*;
                if is_included { Some((($(value!(x $column $type),)*), Self::order(x)?)) } else { None }
            }

            fn order(x: &Task) -> Option<Self::Order> {
                Some(order!(x $($order)*))
            }

            fn all(entries: &Entries) -> &BTreeSet<(Self::Columns, Self::Order)> {
                &entries.$field
            }

            fn values(($($column,)*): &Self::Columns) -> Vec<String> {
                vec![$(text!($column $type)),*]
            }
        })*

        enum Numbers { $($name),* }

        /// All declarations.
        pub fn declared() -> Vec<Declared> {
            vec![$(Declared {
                name: stringify!($field),
                columns: &[$(stringify!($column)),*],
                order: order!(sql $($order)*),
                condition: <[String]>::join(&[$(sql!($($condition)*)),*], " AND "),
            }),*]
        }

        /// The entries of some tasks in all indexes.
        #[derive(Clone, Debug, Default)]
        pub struct Entries {
            $($field: BTreeSet<(<$name as Index>::Columns, <$name as Index>::Order)>,)*
        }

        impl Entries {
            /// Replaces the entries of a task. `None`: there is no such task.
            pub fn replace(&mut self, before: Option<&Task>, after: Option<&Task>) {
                $({
                    let (before, after) = (before.and_then($name::entry), after.and_then($name::entry));
                    if before != after {
                        before.map(|entry| self.$field.remove(&entry));
                        self.$field.extend(after);
                    }
                })*
            }
        }
    };
}

indexes! {
    /// Holders of unique names.
    Name = name(unique_name: Key) by (none) where (is holds_name);
    /// Tasks that no poll has admitted.
    Added = added() by (rank due) where (state Added);
    /// Tasks that wait for their time.
    Scheduled = scheduled() by (rank not_before) where (state Scheduled);
    /// Tasks that can be leased.
    Ready = ready(kind: Kind, priority: i32) by (rank due) where (state Ready);
    /// Leased tasks.
    Leased = leased(worker: WorkerId) by (id) where (state Leased);
    /// Leased tasks of a key.
    LeasedOfKey = leased_key(key: Key) by (none) where (has key) (state Leased);
    /// Leased tasks that their worker must stop. The condition names the state, else SQL stores
    /// would read this instead of the index of leased tasks.
    ToStop = stop(worker: WorkerId) by (id) where (has stop);
    /// Holders of keys.
    Holder = holder(key: Key, ordered: bool, state: State) by (rank line) where (is holds_key);
    /// Ready tasks that hold a key.
    ReadyHolder = ready_holder(kind: Kind) by (id) where (is holds_key) (state Ready);
    /// Tasks that wait for a key. Served ones compete for it.
    Line = line(key: Key, unserved: bool) by (rank line) where (state Blocked);
    /// Blocked tasks that no worker serves.
    Unserved = unserved(kind: Kind) by (id) where (is unserved);
    /// Live tasks with a deadline that are not asked to stop.
    Deadline = deadline() by (time deadline) where (has deadline) (no stop) (no ended);
    /// Ended tasks with pending notifications.
    Unnotified = unnotified() by (id) where (not notified) (has ended);
    /// Ended tasks without pending notifications, not retained for dependents.
    Ended = ended(state: State) by (time ended) where (is notified) (not retained);
    /// The other ended tasks: few, so an end writes one index by end.
    EndedOther = ended_other() by (time ended) where (has ended) (any (not notified) (is retained));
    /// All tasks.
    ByAdded = by_added() by (time added) where;
}

impl Entries {
    /// The entries between two sets of columns, both included.
    pub fn between<I: Index>(
        &self,
        first: I::Columns,
        last: I::Columns,
    ) -> impl DoubleEndedIterator<Item = &(I::Columns, I::Order)> {
        I::all(self).range((first, I::Order::FIRST)..=(last, I::Order::LAST))
    }

    /// The entries with these columns, up to an instant of their order.
    pub fn look<I: Index>(
        &self,
        columns: I::Columns,
        until: Option<Micros>,
    ) -> impl DoubleEndedIterator<Item = &(I::Columns, I::Order)> {
        let last = until.map_or(I::Order::LAST, I::Order::last_at);
        I::all(self).range((columns.clone(), I::Order::FIRST)..=(columns, last))
    }

    /// The holders of a key, or only the ordered ones.
    pub fn holders(
        &self,
        key: &Key,
        ordered: bool,
    ) -> impl DoubleEndedIterator<Item = &(<Holder as Index>::Columns, Rank)> {
        let last = (key.clone(), true, State::Purged);
        self.between::<Holder>((key.clone(), ordered, State::Added), last)
    }

    /// The next key after this one that a task holds or waits for.
    pub fn next_key(&self, after: Option<&Key>) -> Option<Key> {
        fn first<C: Clone + Ord, O: Sort>(
            all: &BTreeSet<(C, O)>,
            last: Option<C>,
            key: impl Fn(&C) -> &Key,
        ) -> Option<Key> {
            let next = match last {
                Some(last) => all.range((last, O::LAST)..).next(),
                None => all.first(),
            };
            next.map(|(columns, _)| key(columns).clone())
        }
        let held = first(&self.holder, after.map(|key| (key.clone(), true, State::Purged)), |(key, ..)| key);
        let waited = first(&self.line, after.map(|key| (key.clone(), true)), |(key, _)| key);
        held.into_iter().chain(waited).min()
    }
}
