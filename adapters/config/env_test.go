package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

type backend struct {
	Timeout time.Duration `env:"TIMEOUT,required"`
}

type settings struct {
	Table   string                   `env:"TABLE,notEmpty" want:"the table's name"`
	Level   slog.Level               `env:"LEVEL" envDefault:"INFO"`
	Workers int                      `env:"WORKERS" envDefault:"10"`
	Debug   bool                     `env:"DEBUG"`
	Home    url.URL                  `env:"HOME_PAGE"`
	Queue   config.URL               `env:"QUEUE"`
	Key     config.Secret            `env:"KEY,notEmpty"`
	Keys    []config.Secret          `env:"KEYS"`
	ByName  map[string]config.Secret `env:"BY_NAME"`
	One     backend                  `envPrefix:"ONE_"`
	Two     backend                  `envPrefix:"TWO_"`
}

func TestReadEnv(t *testing.T) {
	t.Parallel()
	got, err := config.Read[settings]([]string{
		"TABLE=orders", "LEVEL=debug", "QUEUE=https://sqs.example/1/orders", "KEY=" + canary, "KEYS=a,b",
		"ONE_TIMEOUT=1s", "TWO_TIMEOUT=2s", "OTHER=x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Key.Reveal() != canary || len(got.Keys) != 2 || got.Keys[1].Reveal() != "b" {
		t.Error("the secrets were not read")
	}
	got.Key, got.Keys = config.Secret{}, nil
	want := settings{
		Table: "orders", Level: slog.LevelDebug, Workers: 10, Queue: "https://sqs.example/1/orders",
		One: backend{time.Second}, Two: backend{2 * time.Second},
	}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(config.Secret{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadEnvReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Read[settings]([]string{
		"LEVEL=loud", "WORKERS=many", "DEBUG=perhaps", "HOME_PAGE=:", "QUEUE=orders", "KEY=", "BY_NAME=" + canary,
		"ONE_TIMEOUT=1s", "TWO_TIMEOUT=soon\n",
	})
	var problems *config.Error
	if !errors.As(err, &problems) {
		t.Fatalf("error = %v, want an Error", err)
	}
	want := []string{
		`TABLE: want the table's name, got missing`,
		`LEVEL: want a value of type slog.Level, got "loud"`,
		`WORKERS: want a whole number, got "many"`,
		`DEBUG: want true or false, got "perhaps"`,
		`HOME_PAGE: want a URL, got ":"`,
		`QUEUE: want a URL, got "orders"`,
		`KEY: want a secret, got empty`,
		`BY_NAME: want a value of type map[string]config.Secret, got [redacted]`,
		`TWO_TIMEOUT: want a duration such as "30s", got "soon\n"`,
	}
	if diff := cmp.Diff(problems.Problems, want); diff != "" {
		t.Error(diff)
	}
	if lines := strings.Count(err.Error(), "\n"); lines != len(want) {
		t.Errorf("%d lines under the first, want one for each problem:\n%v", lines, err)
	}
	if leaks(err.Error()) {
		t.Errorf("the error shows a secret: %v", err)
	}
}

// picky is a secret that refuses what it is given, and says what that was.
type picky struct{ config.Secret }

func (*picky) UnmarshalText(text []byte) error { return fmt.Errorf("unfit: %s", text) }

func TestReadEnvShowsNoValueThatItCannotPlace(t *testing.T) {
	t.Parallel()
	type keys struct {
		List []struct {
			Key picky `env:"KEY"`
		} `envPrefix:"LIST"`
	}
	_, err := config.Read[keys]([]string{"LIST_0_KEY=" + canary})
	if err == nil || leaks(err.Error()) {
		t.Errorf("error = %v, want one without the value", err)
	}
}

func TestAnAddressIsAURLOfTheWeb(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://sqs.eu-west-1.amazonaws.com/1/orders": true, "http://127.0.0.1:4242": true,
		"": false, "orders": false, "127.0.0.1:4242": false, "ftp://files.example": false, "https://": false, "http://[::1": false,
	} {
		var got config.URL
		if err := got.UnmarshalText([]byte(text)); (err == nil) != want || want && string(got) != text || !want && got != "" {
			t.Errorf("%q: got %q, %v, want it to be an address: %t", text, got, err, want)
		}
	}
}

// shift is an environment in which two variables belong together.
type shift struct {
	Begin time.Duration `env:"BEGIN"`
	End   time.Duration `env:"END"`
}

func (s shift) Problems() []string {
	if s.Begin < s.End {
		return nil
	}
	return []string{"BEGIN, END: want an end after the beginning"}
}

func TestReadEnvReportsWhatOneVariableAloneCannotShow(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		environ, want []string
	}{
		"variables that go together": {[]string{"BEGIN=1s", "END=2s"}, nil},
		"variables that do not":      {[]string{"BEGIN=2s", "END=1s"}, []string{"BEGIN, END: want an end after the beginning"}},
		"what follows from a variable that is a problem by itself is not told": {
			[]string{"BEGIN=2s", "END=noon"}, []string{`END: want a duration such as "30s", got "noon"`},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			_, err := config.Read[shift](tt.environ)
			var got []string
			if problems, ok := errors.AsType[*config.Error](err); ok {
				got = problems.Problems
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("error %v, - got, + want:\n%s", err, diff)
			}
		})
	}
}
