package main

import (
	"errors"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

func TestAFunctionThatExitsEndsRunAndUpAtOnce(t *testing.T) {
	t.Parallel()
	system, log := systemtest.New(t).Start(t, system.Options{Instances: 1, Env: map[string]string{"SCOPE": ""}})
	s := &local{System: system, folder: "build/test", log: log}
	never := stage{"test.jsonl", [][]string{{incidents.Sale("never", 900, incidents.Pays)}}, &killer{}}
	_, err := s.post(t.Context(), never)
	for _, err := range []error{err, s.wait(t.Context())} {
		if !errors.Is(err, lambdatest.ErrExited) || !strings.Contains(err.Error(), "exit status 1") ||
			!strings.Contains(err.Error(), "SCOPE") || !strings.Contains(err.Error(), s.folder.log()) {
			t.Errorf("error = %v, want exit status, output and where the log is", err)
		}
	}
}
