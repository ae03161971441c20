//! A bot joins a finished plan, of which every match still counts.

use arbiter_games::Seed;

use super::{MOST_MEETINGS, SEATS, Table, check, seats, spread};
use crate::schedule::{MOST_BOTS, ScheduleError};

/// The tables by which a newcomer, whose number is `bots`, joins a plan for so many bots in which
/// every pair met `meetings` times; `played` are its tables.
///
/// There are ⌈λn/3⌉ of them, if pairs met λ times. The newcomer is at each, and meets everybody λ
/// times, some λ + 1 times if 3 does not divide λn. The others meet λ or λ + 1 times, if 2λ < n and
/// n > 4; so few bots as cannot do that meet as equally often as is found. Seats follow from those
/// of the played tables, and are mostly within one of each other, at worst within two.
///
/// This counts meetings pair by pair: O(n²) memory.
///
/// # Errors
/// If there are too few bots for a plan, or too many for one more, or too many meetings.
pub fn join(
    bots: usize,
    meetings: u32,
    played: impl IntoIterator<Item = Table>,
    seed: Seed,
) -> Result<Vec<Table>, ScheduleError> {
    check(bots)?;
    if bots >= MOST_BOTS {
        return Err(ScheduleError::TooMany { bots: bots + 1 });
    }
    if meetings > MOST_MEETINGS {
        return Err(ScheduleError::TooMuch { most: MOST_MEETINGS });
    }
    let mut times = vec![[0; SEATS]; bots + 1];
    for table in played {
        for (seat, bot) in table.into_iter().enumerate() {
            times[usize::from(bot)][seat] += 1;
        }
    }
    let count = (meetings as usize * bots).div_ceil(SEATS - 1);
    let dice = &mut seed.derive(&format!("join {bots}")).dice(0);
    let mut tables = spread::tables_with_last(bots + 1, count, dice);
    seats::settle(&mut tables, &times);
    Ok(tables)
}
