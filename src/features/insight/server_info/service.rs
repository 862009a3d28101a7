//! Countries, server time and settings as responses.

use super::countries;
use super::model::{Countries, Defaults, FeeStep, ServerTime};
use crate::features::identity::accounts::AccountTitle;
use crate::kernel::settings::FeeSchedule;
use crate::kernel::types::api_types::NullableField;
use crate::kernel::types::paging::{MAX_RECORDS, RECORDS_DEFAULT};
use crate::state::App;

pub fn countries() -> Countries {
    Countries { countries: countries::names() }
}

pub fn time(app: &App) -> ServerTime {
    ServerTime { utc: app.clock.now().seconds() }
}

pub fn defaults(app: &App) -> Defaults {
    let settings = &app.settings;
    let minutes = settings.reservation.as_secs() / 60;
    Defaults {
        currency: settings.currency.code.to_owned(),
        reservation_minutes: i64::try_from(minutes).unwrap_or(i64::MAX),
        fee_steps: fee_steps(&settings.fee_steps),
        records_default: RECORDS_DEFAULT,
        records_maximum: MAX_RECORDS,
        titles: AccountTitle::ALL.to_vec(),
        minimum_client_version: settings.minimum_client_version.to_string(),
    }
}

fn fee_steps(fees: &FeeSchedule) -> Vec<FeeStep> {
    let steps = fees.steps.iter().map(|(up_to, fee)| FeeStep { up_to: NullableField(Some(*up_to)), fee: *fee });
    steps.chain([FeeStep { up_to: NullableField(None), fee: fees.above }]).collect()
}
