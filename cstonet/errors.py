"""Every failure a user can cause, as a named exception.

All derive from :class:`CStoNetError`, so ``except cs.errors.CStoNetError`` catches whatever the
package raises on purpose; each also derives from the built-in exception a Python programmer would
expect. A message says what was wrong, where (column, argument), and what to do about it.

::

    CStoNetError
    ├── FormulaError (ValueError)          the formula cannot be read
    │   └── UnsafeFormulaError             a safe formula that asks for more than it may
    ├── DataError (ValueError)             the data cannot be used
    │   ├── UnknownColumnError             a name that is no column
    │   ├── DuplicateColumnError           a name that is several columns
    │   ├── EmptyDataError                 no rows, or no covariates
    │   ├── TooFewRowsError                fewer rows than the analysis needs
    │   ├── TooFewClustersError            fewer clusters than the analysis needs
    │   ├── LengthMismatchError            arrays that disagree in length
    │   ├── ColumnTypeError (TypeError)    a column that is neither number nor category
    │   ├── MissingValuesError             NaN, NaT, None or NA
    │   ├── InfiniteValuesError            inf or -inf
    │   ├── ExtremeScaleError              numbers whose squares are too large or small to be any
    │   ├── OutcomeTypeError (TypeError)   an outcome the family cannot describe
    │   ├── ConstantOutcomeError           an outcome without variation
    │   ├── OutcomeLeakError               a covariate that is the outcome
    │   ├── TreatmentTypeError (TypeError) a treatment that cannot be analysed, or not as declared
    │   ├── ConstantTreatmentError         a treatment without variation
    │   ├── OneArmedError                  too few units in one arm
    │   ├── TreatmentLeakError             a covariate that is the treatment
    │   ├── SeparationError                covariates that together determine the treatment
    │   ├── MediatorTypeError (TypeError)  a mediator that is neither number nor two levels
    │   ├── ConstantMediatorError          a mediator without variation
    │   ├── MediatorLeakError              a mediator that is another variable
    │   ├── DataChangedError               covariates that were overwritten after the fit
    │   ├── DoseRangeError                 doses outside those of the data
    │   ├── FileFormatError                a file that is no saved fit, or a damaged one
    │   │   └── NewerFileError             a fit that a newer version saved
    │   ├── UnevenWeightsError             one row with nearly all the weight
    │   ├── UnknownLevelError              a value that is no level of the treatment
    │   └── UnseenLevelError               new data with a level the fit never saw
    ├── OptionError (ValueError)           an option out of its range
    ├── NotAvailableError                  asked of a fit that cannot give it
    │   ├── NotOfThisFitError              another kind of analysis has what was asked for
    │   └── RowsNotSavedError              the fit was saved without its rows
    ├── BackendError (RuntimeError)        what the folds were to run on failed, not the folds
    │   ├── SchedulerError (ConnectionError)   a scheduler that is not there, or has no workers
    │   └── WorkerLostError                a worker died, and what it did cannot be done again
    ├── StoppedError (RuntimeError)        the fit was told to stop from elsewhere
    ├── ForeignFileError (ValueError)      a file that holds something else, or another fit's draws
    │   └── CheckpointError                a checkpoint of another fit, or a damaged one
    ├── InUseError (RuntimeError)          files that another process is writing to
    ├── KernelLevelError (ImportError)     CSTONET_LEVEL names what this processor lacks
    ├── NumericalError (RuntimeError)      the computation broke down
    ├── NotEnoughMemoryError (MemoryError) memory that cannot be had
    ├── NotEnoughSpaceError (OSError)      no room for a temporary file
    ├── FilePathError (OSError)            a path that cannot be read from or written to
    └── MissingPackageError (ImportError)  an optional package that the input or backend needs

    CStoNetWarning (UserWarning)
    ├── PointMassWarning                   a dose that many units share has no density
    ├── OutlyingDoseWarning                doses so far out that the others look all the same
    ├── ThinSupportWarning                 a point of a curve that very few units decide
    ├── EmptyArmWarning                    a covariate without any value in an arm
    ├── FewUnitsWarning                    an effect whose variance a handful of units carries
    ├── LostSupportWarning                 many units without a counterpart in another arm
    ├── KernelLevelWarning                 folds that other processors rounded differently
    ├── CheckpointWarning                  finished folds for which a disk had no room
    ├── OutcomeLeakWarning                 a covariate that is nearly the outcome
    └── UncertainShareWarning              a share of an effect that may be zero
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "CStoNetError",
    "CStoNetWarning",
    "CheckpointError",
    "CheckpointWarning",
    "ColumnTypeError",
    "ConstantMediatorError",
    "ConstantOutcomeError",
    "ConstantTreatmentError",
    "DataChangedError",
    "DataError",
    "DoseRangeError",
    "DuplicateColumnError",
    "EmptyArmWarning",
    "EmptyDataError",
    "ExtremeScaleError",
    "FewUnitsWarning",
    "FileFormatError",
    "FilePathError",
    "ForeignFileError",
    "FormulaError",
    "InUseError",
    "InfiniteValuesError",
    "KernelLevelError",
    "KernelLevelWarning",
    "LengthMismatchError",
    "LostSupportWarning",
    "MediatorLeakError",
    "MediatorTypeError",
    "MissingPackageError",
    "MissingValuesError",
    "NewerFileError",
    "NotAvailableError",
    "NotEnoughMemoryError",
    "NotEnoughSpaceError",
    "NotOfThisFitError",
    "NumericalError",
    "OneArmedError",
    "OptionError",
    "OutcomeLeakError",
    "OutcomeLeakWarning",
    "OutcomeTypeError",
    "OutlyingDoseWarning",
    "PointMassWarning",
    "RowsNotSavedError",
    "SchedulerError",
    "SeparationError",
    "StoppedError",
    "ThinSupportWarning",
    "TooFewClustersError",
    "TooFewRowsError",
    "TreatmentLeakError",
    "TreatmentTypeError",
    "UncertainShareWarning",
    "UnevenWeightsError",
    "UnknownColumnError",
    "UnknownLevelError",
    "UnsafeFormulaError",
    "UnseenLevelError",
    "WorkerLostError",
]


class CStoNetError(Exception):
    """Base of every exception the package raises on purpose."""

    def __reduce__(self) -> tuple[type[CStoNetError], tuple[object, ...]]:
        # Said here, because some packages teach pickle a way of their own, by which an error of
        # two built-in kinds cannot be made again.
        return type(self), self.args


class FormulaError(CStoNetError, ValueError):
    """The formula cannot be read, or says something contradictory."""


class UnsafeFormulaError(FormulaError):
    """A formula that was to be safe says more than plain computations on columns."""


class DataError(CStoNetError, ValueError):
    """The data cannot be used as they are."""


# Not a KeyError: that class prints its message quoted and escaped.
class UnknownColumnError(DataError):
    """A name refers to no column of the data."""


class DuplicateColumnError(DataError):
    """A name refers to more than one column of the data."""


class EmptyDataError(DataError):
    """There are no rows, or no covariates, to work with."""


class TooFewRowsError(DataError):
    """There are fewer rows than the analysis needs, e.g. fewer than folds."""


class TooFewClustersError(DataError):
    """There are fewer clusters than the analysis needs, e.g. one, or fewer than folds."""


class LengthMismatchError(DataError):
    """Arrays that describe the same units disagree in length."""


class ColumnTypeError(DataError, TypeError):
    """A column is neither numeric nor a category with well-defined levels."""


class MissingValuesError(DataError):
    """Values are missing and the analysis was not told what to do about it."""


class InfiniteValuesError(DataError):
    """Values are infinite."""


class ExtremeScaleError(DataError):
    """Numbers are so large, or differ by so little, that nothing can be computed with squares."""


class OutcomeTypeError(DataError, TypeError):
    """The outcome does not fit the family."""


class ConstantOutcomeError(DataError):
    """The outcome takes a single value."""


class OutcomeLeakError(DataError):
    """A covariate is the outcome itself, possibly in other units or relabelled."""


class TreatmentTypeError(DataError, TypeError):
    """The treatment is not of a supported kind, or not of the declared one."""


class ConstantTreatmentError(DataError):
    """The treatment takes a single value, so there is nothing to compare."""


class OneArmedError(DataError):
    """One arm of the treatment has too few units, in the data or in a fold."""


class TreatmentLeakError(DataError):
    """A covariate is the treatment itself, possibly relabelled."""


class SeparationError(DataError):
    """Covariates determine the treatment: hardly a unit has a counterpart in the other arm."""


class MediatorTypeError(DataError, TypeError):
    """A mediator is neither numeric nor has two levels."""


class ConstantMediatorError(DataError):
    """A mediator takes a single value."""


class MediatorLeakError(DataError):
    """A mediator is the outcome, the treatment, a covariate or another mediator."""


class DataChangedError(DataError):
    """Covariates were overwritten after the fit, which holds them as the user's own array."""


class DoseRangeError(DataError):
    """Doses were asked about that are outside those of the data."""


class FileFormatError(DataError):
    """A file is no fit that ``save`` wrote, is damaged, or holds what no fit has."""


class NewerFileError(FileFormatError):
    """A file was saved by a newer version, and this one cannot read all of it."""


class UnevenWeightsError(DataError):
    """One row has nearly all the weight of an arm, or of the data: the others count for nothing."""


class UnknownLevelError(DataError):
    """A reference or a contrast names a value that the treatment does not take."""


class UnseenLevelError(DataError):
    """New data hold a level of a categorical covariate that the fit never saw."""


class OptionError(CStoNetError, ValueError):
    """An option is unknown, or outside its range."""


class NotAvailableError(CStoNetError):
    """The fit cannot give what was asked of it."""


class NotOfThisFitError(NotAvailableError, AttributeError):
    """Another kind of analysis has what was asked for; the message names what this one has."""


class RowsNotSavedError(NotAvailableError):
    """What was asked for needs the rows of the data, and the fit was saved without them."""


class BackendError(CStoNetError, RuntimeError):
    """What the folds of a fit were to run on failed; the folds themselves did not."""


class SchedulerError(BackendError, ConnectionError):
    """The scheduler of a cluster is not there, or has no workers."""


class WorkerLostError(BackendError):
    """A worker died, and what it was doing cannot be done again."""


class StoppedError(CStoNetError, RuntimeError):
    """The fit was stopped from elsewhere: by its stop event, or by the interpreter's end."""


class ForeignFileError(CStoNetError, ValueError):
    """A file that draws were to be kept in holds something else, or those of another fit."""


class CheckpointError(ForeignFileError):
    """A checkpoint is of other data, options or versions, is damaged, or is no checkpoint."""


class InUseError(CStoNetError, RuntimeError):
    """Another fit is writing to the same files."""


class KernelLevelError(CStoNetError, ImportError):
    """CSTONET_LEVEL in the environment names an instruction-set level that is not there."""


class NumericalError(CStoNetError, RuntimeError):
    """The computation broke down, e.g. a loss that is not finite."""


class NotEnoughMemoryError(CStoNetError, MemoryError):
    """Memory that the data need cannot be had."""


class NotEnoughSpaceError(CStoNetError, OSError):
    """There is no room for the temporary file of data that do not fit in memory."""


class FilePathError(CStoNetError, OSError):
    """A path cannot be read from or written to: it is not there, a folder, or not allowed."""


class MissingPackageError(CStoNetError, ImportError):
    """An optional package that the data or the backend need is not installed."""


class CStoNetWarning(UserWarning):
    """Base of the package's named warnings."""


class PointMassWarning(CStoNetWarning):
    """Many units have exactly the same dose, which a continuous treatment does not provide for."""


class OutlyingDoseWarning(CStoNetWarning):
    """A few doses lie so far from the others that these look all the same."""


class ThinSupportWarning(CStoNetWarning):
    """A point of a dose-response curve rests on very few units."""


class EmptyArmWarning(CStoNetWarning):
    """A covariate has no value in one arm, so that what is imputed there rests on the model."""


class FewUnitsWarning(CStoNetWarning):
    """A handful of units carry the variance of an effect: its standard error is uncertain."""


class LostSupportWarning(CStoNetWarning):
    """Many units have no counterpart in another arm, so that effects rest on extrapolation."""


class KernelLevelWarning(CStoNetWarning):
    """Folds ran on processors of another instruction-set level, which round differently."""


class CheckpointWarning(CStoNetWarning):
    """Finished folds could not be written to the checkpoint; the fit goes on without."""


class OutcomeLeakWarning(CStoNetWarning):
    """A covariate says nearly all about the outcome, as something made of it would."""


class UncertainShareWarning(CStoNetWarning):
    """The proportion mediated was asked for, but the total effect may be zero."""
