"""What all models have in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator

_RULES = {
    "literal_error",
    "string_pattern_mismatch",
    "string_too_long",
    "string_too_short",
    "too_long",
    "too_short",
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
}


class Model(BaseModel):
    """Takes what a newer server says: fields, words and lengths that this version does not know stay as they came.
    Whether a request is valid is the server's to say."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _take_new_words(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError as error:
            if all(each["type"] in _RULES for each in error.errors(include_url=False)):
                return value
            raise
