//! What is remembered of a database for as long as it is as it was.

/// Things as they are while the database tells that it stands at `S`, such as a number of changes: what was remembered of any other
/// state is forgotten. All is forgotten as well where it would be too much.
pub struct VersionedCache<S, T> {
    most: usize,
    weight: usize,
    state: Option<S>,
    things: T,
}

impl<S: Clone + PartialEq, T: Default> VersionedCache<S, T> {
    /// Remembers things of at most so much weight.
    pub fn with_capacity(most: usize) -> Self {
        Self { most, weight: 0, state: None, things: T::default() }
    }

    /// What is remembered of this state.
    pub fn get_mut(&mut self, state: &S) -> &mut T {
        if self.state.as_ref() != Some(state) {
            *self = Self { state: Some(state.clone()), ..Self::with_capacity(self.most) };
        }
        &mut self.things
    }

    /// The same with room for something of this weight, which is to be put there.
    pub fn reserve(&mut self, state: &S, weight: usize) -> &mut T {
        if self.weight + weight > self.most {
            self.state = None;
        }
        self.get_mut(state);
        self.weight += weight;
        &mut self.things
    }

    /// What is remembered, of whatever state.
    pub fn entries(&mut self) -> &mut T {
        &mut self.things
    }
}
