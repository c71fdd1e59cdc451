"""What all models have in common."""

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

_NOT_SAID: Any = object()
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
    What an older server does not say is None. Whether a request is valid is the server's to say."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _take_less(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        required = {name: field.alias or name for name, field in cls.model_fields.items() if field.is_required()}
        missing = [alias for name, alias in required.items() if alias not in data and name not in data]
        if not missing or len(missing) == len(required):  # complete, or something else altogether
            return data
        return {**data, **dict.fromkeys(missing, _NOT_SAID)}

    @field_validator("*", mode="wrap")
    @classmethod
    def _take_new_words(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        if value is _NOT_SAID:
            return None
        try:
            return check(value)
        except ValidationError as error:
            if all(each["type"] in _RULES for each in error.errors(include_url=False)):
                return value
            raise
