//! Tables with an entry for every eight bytes of memory that were accessed.

use super::HashMap;

/// Eight-byte granules on a page of memory.
const PER_PAGE: usize = 512;

/// A table with one entry for each granule of the accessed pages.
#[derive(Debug)]
pub(super) struct Pages<T> {
    /// The index of each page.
    places: HashMap<u64, usize>,
    pages: Vec<Box<[T; PER_PAGE]>>,
    /// The latest page and its index: most accesses are near the previous one.
    latest: (u64, usize),
}

/// No page has this number.
const NO_PAGE: u64 = u64::MAX;

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages { places: HashMap::default(), pages: Vec::new(), latest: (NO_PAGE, 0) }
    }
}

fn slot(address: u64) -> usize {
    (address >> 3) as usize % PER_PAGE
}

impl<T: Copy + Default> Pages<T> {
    #[inline]
    /// The entry of the granule that holds the byte at `address`.
    pub(super) fn entry(&mut self, address: u64) -> &mut T {
        let page = address >> 12;
        if self.latest.0 != page {
            self.latest = (page, self.place(page));
        }
        &mut self.pages[self.latest.1][slot(address)]
    }

    /// The entry, without creating it.
    pub(super) fn get(&self, address: u64) -> Option<&T> {
        let place = *self.places.get(&(address >> 12))?;
        Some(&self.pages[place][slot(address)])
    }

    fn place(&mut self, page: u64) -> usize {
        *self.places.entry(page).or_insert_with(|| {
            self.pages.push(Box::new([T::default(); PER_PAGE]));
            self.pages.len() - 1
        })
    }
}
