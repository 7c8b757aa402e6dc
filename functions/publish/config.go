package main

import (
	"orderonce/adapters/config"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	AWS config.AWS

	Bus   string      `env:"EVENT_BUS,notEmpty" want:"the name or the ARN of an event bus"`
	Scope setup.Scope `env:"SCOPE,notEmpty"     want:"1 to 32 lower-case letters, digits or '-', the first a letter"`
}
