//! The error codes of the platform. Those that are not specific to it are constants of [`Code`].

use boxoffice_http::error::Code;
use boxoffice_http::error_codes;

error_codes! {
    /// The codes declared here.
    const PLATFORM;

    ADMISSION_NONE = ("admission.none", BAD_REQUEST, "None of these tickets can be admitted here."),
    SESSION_WRONG_PASSWORD = ("session.wrong-password", UNAUTHORIZED, "The password is wrong."),
    PAYMENT_DECLINED = (
        "payment.declined",
        PAYMENT_REQUIRED,
        "The payment was declined. The order is still open; try another means of payment."
    ),
    ACCOUNT_DEACTIVATED = ("account.deactivated", FORBIDDEN, "This account is deactivated."),
    ACCOUNT_UNKNOWN = ("account.unknown", NOT_FOUND, "No account has this username or e-mail."),
    SESSION_ENDED = ("session.ended", CONFLICT, "This session has ended already."),
    ACCOUNT_TAKEN = ("account.taken", CONFLICT, "Another account has this username or e-mail address."),
    ACCOUNT_INACTIVE = ("account.inactive", CONFLICT, "This account is deactivated already."),
    ACCOUNT_LAST_ADMINISTRATOR = ("account.last-administrator", CONFLICT, "This is the last active administrator."),
    ACCOUNT_HAS_TICKETS = ("account.has-tickets", CONFLICT, "This account has tickets to events that have not ended."),
    VERIFICATION_CLOSED = ("verification.closed", CONFLICT, "This verification has ended. Request another one."),
    RESET_CLOSED = ("reset.closed", CONFLICT, "This reset has ended. Request another one."),
    REGION_TAKEN = ("region.taken", CONFLICT, "Another region has this name."),
    REGION_IN_USE = ("region.in-use", CONFLICT, "Venues are in this region. Move or remove them first."),
    CATEGORY_TAKEN = ("category.taken", CONFLICT, "Another category has this name."),
    CATEGORY_IN_USE = ("category.in-use", CONFLICT, "Events have this category, or a subcategory that the change would remove."),
    VENUE_TAKEN = ("venue.taken", CONFLICT, "Another venue has this name."),
    VENUE_IN_USE = ("venue.in-use", CONFLICT, "Events are or have been staged at this venue."),
    HOST_TAKEN = ("host.taken", CONFLICT, "Another host has this name."),
    HOST_REMOVED = ("host.removed", CONFLICT, "The host has been removed."),
    HOST_TOO_MANY = ("host.too-many", CONFLICT, "This account administers the maximum number of hosts."),
    ADMINISTRATOR_TAKEN = ("administrator.taken", CONFLICT, "This account administers the host already."),
    ADMINISTRATOR_LAST = ("administrator.last", CONFLICT, "This account is the host's last administrator."),
    EVENT_TAKEN = ("event.taken", CONFLICT, "Another event has this title."),
    EVENT_SOLD = ("event.sold", CONFLICT, "Tickets to this event have been sold. Withdraw or cancel it instead."),
    EVENT_NOT_DRAFT = ("event.not-draft", CONFLICT, "Only a draft can be submitted for review."),
    EVENT_NOT_LISTED = ("event.not-listed", CONFLICT, "This event is not listed."),
    EVENT_OVER = ("event.over", CONFLICT, "This event is over."),
    EVENT_CANCELLED = ("event.cancelled", CONFLICT, "This event is cancelled."),
    SECTION_TAKEN = ("section.taken", CONFLICT, "Another section of this event has this name."),
    SECTION_IN_USE = ("section.in-use", CONFLICT, "This section has sold tickets or active reservations."),
    SECTION_SOLD_OUT = ("section.sold-out", CONFLICT, "Too few places are left in this section."),
    SECTION_NOT_SOLD_OUT = ("section.not-sold-out", CONFLICT, "This section has places left that can be ordered."),
    SECTION_INACTIVE = ("section.inactive", CONFLICT, "This section is not active."),
    SECTION_NOT_ON_SALE = ("section.not-on-sale", CONFLICT, "This section is not on sale at this time."),
    SECTION_CAPACITY = ("section.capacity", CONFLICT, "The capacity cannot be less than the places sold and reserved."),
    SECTION_ACCOUNT_MAXIMUM = ("section.account-maximum", CONFLICT, "This account may not buy as many tickets of this section."),
    SECTION_TOO_MANY = ("section.too-many", CONFLICT, "This event has the maximum number of sections."),
    WAITING_LIST_JOINED = ("waiting-list.joined", CONFLICT, "This account is on the section's waiting list already."),
    WAITING_LIST_FULL = ("waiting-list.full", CONFLICT, "The section's waiting list is full."),
    WAITING_LIST_TOO_MANY = ("waiting-list.too-many", CONFLICT, "This account is on the maximum number of waiting lists."),
    MODIFIER_TAKEN = ("modifier.taken", CONFLICT, "Another price modifier of this section has this name."),
    MODIFIER_TOO_MANY = ("modifier.too-many", CONFLICT, "This section has the maximum number of price modifiers."),
    ZONE_IN_USE = ("zone.in-use", CONFLICT, "Advertisements are assigned to this zone."),
    ADVERTISEMENT_TAKEN = ("advertisement.taken", CONFLICT, "Another advertisement has this name."),
    ADVERTISEMENT_TOO_MANY = ("advertisement.too-many", CONFLICT, "This event has the maximum number of advertisements."),
    ADVERTISEMENT_NOT_DRAFT = ("advertisement.not-draft", CONFLICT, "Only a draft can be submitted for review."),
    ADVERTISEMENT_NOT_LISTED = ("advertisement.not-listed", CONFLICT, "This advertisement is not listed."),
    ADVERTISEMENT_CANCELLED = ("advertisement.cancelled", CONFLICT, "This advertisement is cancelled."),
    SUBMISSION_DECIDED = ("submission.decided", CONFLICT, "This submission has been decided."),
    ORDER_TOO_MANY = ("order.too-many", CONFLICT, "The account has too many open orders. Pay for or cancel one first."),
    ORDER_NOT_OPEN = ("order.not-open", CONFLICT, "This order is no longer open."),
    ORDER_NOT_FULFILLED = ("order.not-fulfilled", CONFLICT, "This order is not fulfilled."),
    ADMISSION_TOO_LATE = ("admission.too-late", CONFLICT, "An admission can be undone for 10 minutes only."),
    ADMISSION_ORDER_VOIDED = ("admission.order-voided", CONFLICT, "The order of this admission's ticket was voided."),
    ADMISSION_CONFLICT = ("admission.conflict", CONFLICT, "Another gate has admitted this ticket, too."),
    EVENT_NOT_CANCELLED = ("event.not-cancelled", CONFLICT, "This event is not cancelled."),
    EVENT_RETURNING = ("event.returning", CONFLICT, "The orders of this event are being returned already."),
    TICKET_NOT_ISSUED = ("ticket.not-issued", CONFLICT, "Only a ticket that is Issued can be transferred or returned."),
    TRANSFER_NOT_OPEN = ("transfer.not-open", CONFLICT, "This transfer is no longer open."),
    TOKEN_TOO_MANY = ("token.too-many", CONFLICT, "This event has the maximum number of admission tokens."),
    TOKEN_GLOBAL = ("token.global", CONFLICT, "The event's global token can be neither changed nor removed."),
    PAYMENT_GATEWAY = ("payment.gateway", BAD_GATEWAY, "The payment gateway failed. Nothing was taken; try again later."),
}

/// Returns all codes that the server sends.
pub fn all() -> Vec<Code> {
    [Code::GENERIC, PLATFORM].concat()
}
