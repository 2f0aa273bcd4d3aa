//! [`ask`]: sends one question to the drives that a command names, or to all drives of the array.

use csd_initiator::{Address, Controller, Error};
use csd_store::array::{Array, ArrayFile};

use crate::context::Context;
use crate::report::Failure;
use crate::runtime::runtime;

/// Drives by name or URL, each with its answer or the reason why it has none.
pub(crate) type Answers<T> = Vec<(String, Result<T, String>)>;

/// Returns the address of a drive, by its URL or its name in the array.
///
/// # Errors
/// If the URL is malformed, or the array has no such drive.
pub(crate) fn address_of(which: &str, context: &Context) -> Result<Address, Failure> {
    if which.contains("://") {
        return which.parse().map_err(|error: Error| Failure::usage(error));
    }
    let file = ArrayFile::load(context.array_path())?;
    let found = drive_named(&file.drives, |drive| &drive.name, which)?;
    found.url.parse().map_err(|error: Error| Failure::run(error))
}

/// Asks the drive with the name or URL `which`, or all drives of the array. The question gets the
/// connection, and the namespace if the URL has one.
///
/// # Errors
/// If there is no such drive, or the drive of a URL does not answer.
pub(crate) fn ask<T: Send + 'static>(
    which: Option<&String>,
    context: &Context,
    question: impl AsyncFn(&Controller, Option<u32>) -> Result<T, Error> + Send + 'static,
) -> Result<Answers<T>, Failure> {
    let Some(url) = which.filter(|which| which.contains("://")) else {
        return of_array(which.cloned(), context, question);
    };
    let address: Address = url.parse().map_err(|why| Failure::usage(format!("{url}: {why}")))?;
    let connection = context.options()?;
    let answered = csd_reactor::block_on(&runtime(), move || async move {
        let controller = Controller::connect(&address, &connection).await?;
        let answer = question(&controller, address.nsid).await;
        controller.disconnect().await;
        answer
    });
    match answered.map_err(Failure::run)? {
        Ok(answer) => Ok(vec![(url.clone(), Ok(answer))]),
        Err(error) => Err(Failure::run(error)),
    }
}

/// Returns the error of a drive whose answer cannot be parsed.
pub(crate) fn malformed(controller: &Controller, what: &str) -> Error {
    let drive = controller.address().to_string().into();
    Error::Protocol { drive, reason: format!("its {what} is malformed") }
}

fn of_array<T: Send + 'static>(
    only: Option<String>,
    context: &Context,
    question: impl AsyncFn(&Controller, Option<u32>) -> Result<T, Error> + Send + 'static,
) -> Result<Answers<T>, Failure> {
    context.with_array(async move |array: &Array| {
        let slots = match &only {
            Some(only) => vec![drive_named(array.slots(), |slot| &slot.name, only)?],
            None => array.occupied().collect(),
        };
        let mut answers = Vec::new();
        for slot in slots {
            let answer = match slot.drive() {
                Ok(drive) => question(&drive.controller, None).await.map_err(|e| e.to_string()),
                Err(why) => Err(why.to_owned()),
            };
            answers.push((slot.name.clone(), answer));
        }
        Ok(answers)
    })
}

/// Returns the drive of an array that has this name.
pub(crate) fn drive_named<'a, T>(
    drives: &'a [T],
    name_of: impl Fn(&T) -> &str,
    name: &str,
) -> Result<&'a T, Failure> {
    let found = drives.iter().find(|drive| name_of(drive) == name);
    found.ok_or_else(|| Failure::usage(format!("the array has no drive {name:?}")))
}
