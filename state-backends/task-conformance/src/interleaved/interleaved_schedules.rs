//! All orders of sessions with a bounded number of switches. Most faults need one or two.

/// Depth first: repeats the last choices, except the last one with an alternative.
#[derive(Debug)]
pub(super) struct Schedules {
    most: usize,
    every: usize,
    left: usize,
    /// (chosen, options) of each choice.
    path: Vec<(usize, usize)>,
    at: usize,
    has_begun: bool,
}

impl Schedules {
    /// At most `most` switches from sessions that could proceed; only every `every`-th order of
    /// those that differ in the last.
    pub(super) fn new(most: usize, every: usize) -> Self {
        Self { most, every, left: 0, path: Vec::new(), at: 0, has_begun: false }
    }

    /// Starts the next order. `false`: there is none.
    pub(super) fn begin(&mut self) -> bool {
        (self.left, self.at) = (self.most, 0);
        if !self.has_begun {
            self.has_begun = true;
            return true;
        }
        let mut passed = 0;
        while let Some((chosen, of)) = self.path.pop() {
            if chosen + 1 < of {
                passed += 1;
                if passed >= self.every || self.path.is_empty() {
                    self.path.push((chosen + 1, of));
                    return true;
                }
            }
        }
        false
    }

    /// The session that runs next. `None`: none can.
    pub(super) fn choose(&mut self, current: Option<usize>, can: &[usize]) -> Option<usize> {
        let goes_on = current.filter(|current| can.contains(current));
        let others = can.iter().copied().filter(|who| Some(*who) != goes_on);
        let is_free = goes_on.is_none();
        let options: Vec<usize> = match goes_on {
            Some(current) if self.left == 0 => vec![current],
            _ => goes_on.into_iter().chain(others).collect(),
        };
        if options.len() < 2 {
            return options.first().copied();
        }
        if self.at == self.path.len() {
            self.path.push((0, options.len()));
        }
        let (chosen, _) = self.path[self.at];
        self.at += 1;
        if chosen > 0 && !is_free {
            self.left -= 1;
        }
        options.get(chosen).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(statements: &[usize], most: usize, every: usize) -> BTreeSet<Vec<usize>> {
        let mut schedules = Schedules::new(most, every);
        let mut all = BTreeSet::new();
        while schedules.begin() {
            let (mut left, mut order) = (statements.to_vec(), Vec::new());
            loop {
                let can: Vec<_> = (0..left.len()).filter(|&who| left[who] > 0).collect();
                let Some(who) = schedules.choose(order.last().copied(), &can) else { break };
                left[who] -= 1;
                order.push(who);
            }
            assert!(all.insert(order), "none comes twice");
        }
        all
    }

    #[test]
    fn every_order_comes_once() {
        // The numbers of combinations: 3 of 7; 2 of 6 times 2 of 4.
        assert_eq!(all(&[3, 4], 7, 1).len(), 35);
        assert_eq!(all(&[2, 2, 2], 6, 1).len(), 90);
        assert_eq!(all(&[3, 4], 0, 1).len(), 2);
        let one = all(&[3, 3], 1, 1);
        assert!(one.contains(&vec![0, 1, 1, 1, 0, 0]) && !one.contains(&vec![0, 1, 0, 1, 0, 1]), "{one:?}");
    }

    #[test]
    fn sampled_schedules_begin_with_each_session() {
        let (all, some) = (all(&[20, 20], 1, 1), all(&[20, 20], 1, 5));
        assert!(some.is_subset(&all) && some.len() < all.len() / 4, "{} of {}", some.len(), all.len());
        let left = |first| some.iter().filter(|order| order[0] == first && order[19] != first).count();
        assert!(left(0) > 2 && left(1) > 2, "{some:?}");
    }
}
