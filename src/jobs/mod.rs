//! Work that runs beside the requests.
