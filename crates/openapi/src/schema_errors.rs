//! Explanation of the errors of a value: those that caused the error of a reference or of an `anyOf`.
//!
//! `jsonschema` has one error for a reference to a registered schema ([`SchemaRegistry`]), and one for an `anyOf` or `oneOf` without a
//! valid branch. A client needs the errors inside: those of the registered schema, or of the branch that the value is probably meant for.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};

use crate::schema_registry::SchemaRegistry;

impl SchemaRegistry {
    /// Validates a value. Returns each error with its location in the value, as a JSON pointer.
    pub fn errors(self: &Arc<Self>, validator: &Validator, value: &Value) -> Vec<(String, ValidationError<'static>)> {
        // `is_valid` is much faster than collecting errors, and most values are valid.
        if validator.is_valid(value) {
            return Vec::new();
        }
        let mut errors = self.errors_in(validator, value, "", &mut Vec::new());
        remove_consequences(&mut errors);
        errors
    }

    /// Collects the errors of the value at `location`, including those within registered schemas. `visited` contains the targets
    /// being expanded, with their locations, and prevents endless recursion.
    fn errors_in(
        self: &Arc<Self>,
        validator: &Validator,
        value: &Value,
        location: &str,
        visited: &mut Vec<(String, String)>,
    ) -> Vec<(String, ValidationError<'static>)> {
        let mut errors = Vec::new();
        for error in validator.iter_errors(value) {
            self.expand(error.to_owned(), location, visited, &mut errors);
        }
        errors
    }

    /// Appends an error to `errors`, or those that caused it: in a registered schema, or in the closest branch of an `anyOf` or
    /// `oneOf`.
    fn expand(
        self: &Arc<Self>,
        error: ValidationError<'static>,
        location: &str,
        visited: &mut Vec<(String, String)>,
        errors: &mut Vec<(String, ValidationError<'static>)>,
    ) {
        let pointer = format!("{location}{}", error.instance_path());
        if let Some((target, validator)) = self.registered(&error) {
            let step = (target.to_owned(), pointer);
            if visited.contains(&step) {
                errors.push((step.1, error));
                return;
            }
            visited.push(step.clone());
            errors.extend(self.errors_in(validator, error.instance(), &step.1, visited));
            visited.pop();
            return;
        }
        if let Some((inner, error)) = self.common_enumeration(&error) {
            errors.push((format!("{location}{inner}"), error));
            return;
        }
        let Some(index) = self.closest_branch(&error) else {
            errors.push((pointer, error));
            return;
        };
        if let ValidationErrorKind::AnyOf { mut context } | ValidationErrorKind::OneOfNotValid { mut context } =
            error.into_parts().kind
        {
            context.swap_remove(index).into_iter().for_each(|error| self.expand(error, location, visited, errors));
        }
    }

    /// Returns the error of a value for which each of the closest branches of an `anyOf` or `oneOf` has another enumeration, such as a
    /// discriminator, and its location. The error lists the values of all these branches.
    fn common_enumeration(self: &Arc<Self>, error: &ValidationError<'_>) -> Option<(String, ValidationError<'static>)> {
        let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
            return None;
        };
        let ranks = self.ranks(context, error.instance_path().as_str());
        let fewest = ranks.iter().flatten().map(|(enumerations, _)| *enumerations).min()?;
        let is_close = |rank: &Option<(usize, usize)>| rank.is_some_and(|(enumerations, _)| enumerations == fewest);
        let branches = context.iter().zip(&ranks).filter(|(_, rank)| is_close(rank));
        let mut branches = branches.map(|(branch, _)| self.enumerations(branch));
        let (mut common, second) = (branches.next()?, branches.next()?);
        for branch in [second].into_iter().chain(branches) {
            common.retain_mut(|(at, _, options)| match branch.iter().find(|(other, ..)| other == at) {
                Some((.., others)) => {
                    let added: Vec<Value> = others.iter().filter(|other| !options.contains(other)).cloned().collect();
                    options.extend(added);
                    true
                }
                None => false,
            });
        }
        let (at, value, options) = common.into_iter().next()?;
        let validator = jsonschema::validator_for(&json!({ "enum": options })).ok()?;
        let error = validator.iter_errors(&value).next()?.to_owned();
        Some((at, error))
    }

    /// Returns the errors of a branch about enumerations: the location, the value, and the values of the enumeration.
    fn enumerations(self: &Arc<Self>, branch: &[ValidationError<'_>]) -> Vec<(String, Value, Vec<Value>)> {
        let enumeration = |error: &ValidationError<'_>, location: &str| match error.kind() {
            ValidationErrorKind::Enum { options } => {
                let at = format!("{location}{}", error.instance_path());
                Some((at, Value::clone(error.instance()), options.as_array()?.clone()))
            }
            _ => None,
        };
        let in_error = |error: &ValidationError<'_>| match self.registered(error) {
            Some((_, validator)) => {
                let location = error.instance_path().as_str();
                validator.iter_errors(error.instance()).filter_map(|inner| enumeration(&inner, location)).collect::<Vec<_>>()
            }
            None => enumeration(error, "").into_iter().collect(),
        };
        branch.iter().flat_map(in_error).collect()
    }

    /// Returns the index of the branch that a value is probably meant for, if the error is that it matches none: the only one with the
    /// fewest errors about enumerations, because these tell branches apart, and then with the fewest errors at all. A branch of
    /// another type is not considered.
    fn closest_branch(self: &Arc<Self>, error: &ValidationError<'_>) -> Option<usize> {
        let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
            return None;
        };
        let ranks = self.ranks(context, error.instance_path().as_str());
        let lowest = ranks.iter().flatten().min()?;
        let mut closest = (0..ranks.len()).filter(|index| ranks[*index].as_ref() == Some(lowest));
        closest.next().filter(|_| closest.next().is_none())
    }

    /// Returns how far a value at a location is from each branch: the number of errors about enumerations, and of all errors. `None` for a
    /// branch of another type.
    fn ranks(self: &Arc<Self>, branches: &[Vec<ValidationError<'_>>], at: &str) -> Vec<Option<(usize, usize)>> {
        let kind = |error: &ValidationError<'_>, at: &str| match error.kind() {
            ValidationErrorKind::Type { .. } if error.instance_path().as_str() == at => BranchError::Type,
            ValidationErrorKind::Enum { .. } | ValidationErrorKind::Not { .. } => BranchError::Enum,
            _ => BranchError::Other,
        };
        let kinds = |branch: &Vec<ValidationError<'_>>| -> Vec<BranchError> {
            let in_error = |error: &ValidationError<'_>| match self.registered(error) {
                Some((_, validator)) => validator.iter_errors(error.instance()).map(|error| kind(&error, "")).collect(),
                None => vec![kind(error, at)],
            };
            branch.iter().flat_map(in_error).collect()
        };
        let rank = |kinds: Vec<BranchError>| {
            let enums = kinds.iter().filter(|kind| **kind == BranchError::Enum).count();
            (!kinds.contains(&BranchError::Type)).then_some((enums, kinds.len()))
        };
        branches.iter().map(|branch| rank(kinds(branch))).collect()
    }
}

/// The kind of an error in a branch of an `anyOf` or `oneOf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BranchError {
    /// The value itself has another type.
    Type,
    /// The value, or a value in it, is not one of an enumeration, or is excluded by `not`.
    Enum,
    Other,
}

/// Removes the errors about undeclared properties of a value that has another error, at itself or inside: a branch that fails declares
/// nothing. Also removes that a required property is missing, if it is only undeclared: `jsonschema` reports both.
fn remove_consequences(errors: &mut Vec<(String, ValidationError<'static>)>) {
    let is_present = |name: &Value, object: &Value| name.as_str().is_some_and(|name| object.get(name).is_some());
    errors.retain(|(_, error)| match error.kind() {
        ValidationErrorKind::Required { property } => !is_present(property, error.instance()),
        _ => true,
    });
    let is_consequence = |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::UnevaluatedProperties { .. });
    let causes: Vec<(String, bool)> = errors.iter().map(|(pointer, error)| (pointer.clone(), is_consequence(error))).collect();
    errors.retain(|(pointer, error)| {
        let is_cause = |(other, other_is_consequence): &(String, bool)| match other.strip_prefix(pointer.as_str()) {
            Some("") => !other_is_consequence,
            Some(inner) => inner.starts_with('/'),
            None => false,
        };
        !is_consequence(error) || !causes.iter().any(is_cause)
    });
}
