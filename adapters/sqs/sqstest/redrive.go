package sqstest

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// maxSources: "You can specify up to 10 source queue ARNs" (API reference, SetQueueAttributes, RedriveAllowPolicy).
const maxSources = 10

// Permission says which queues may name another one as their dead-letter queue.
type Permission string

// The permissions (API reference, SetQueueAttributes, RedriveAllowPolicy).
const (
	AllowAll Permission = "allowAll"
	DenyAll  Permission = "denyAll"
	ByQueue  Permission = "byQueue"
)

// Allow is a queue's redrive allow policy. The zero Allow is no policy: any queue may.
type Allow struct {
	Permission Permission
	Sources    [maxSources]string // ARNs, with ByQueue and only then; they need not exist yet
}

func (a Allow) lets(source string) bool {
	switch a.Permission {
	case DenyAll:
		return false
	case ByQueue:
		return slices.Contains(a.Sources[:], ARN(source))
	case AllowAll, "":
	}
	return true
}

func (a Allow) check() error {
	known := a.Permission == "" || a.Permission == AllowAll || a.Permission == DenyAll || a.Permission == ByQueue
	if !known || (a.Permission == ByQueue) != (a.Sources != [maxSources]string{}) {
		return badAttribute("RedriveAllowPolicy")
	}
	return nil
}

type redrivePolicy struct {
	Target      string      `json:"deadLetterTargetArn"`
	MaxReceives json.Number `json:"maxReceiveCount"` // a number, or the same in quotes
}

// redrive sets the redrive policy from its JSON; empty removes it.
func (s Settings) redrive(policy string) (Settings, error) {
	s.DeadLetters, s.MaxReceives = "", 0
	if policy == "" {
		return s, nil
	}
	var p redrivePolicy
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return s, err
	}
	n, err := strconv.Atoi(p.MaxReceives.String())
	name, ok := strings.CutPrefix(p.Target, ARN(""))
	if err != nil || !ok {
		return s, errors.New("not a redrive policy")
	}
	s.DeadLetters, s.MaxReceives = name, n
	return s, nil
}

type allowPolicy struct {
	Permission Permission `json:"redrivePermission"`
	Sources    []string   `json:"sourceQueueArns,omitempty"`
}

// allow sets the redrive allow policy from its JSON; empty removes it.
func (s Settings) allow(policy string) (Settings, error) {
	s.Allow = Allow{}
	if policy == "" {
		return s, nil
	}
	var p allowPolicy
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return s, err
	}
	if p.Permission == "" || len(p.Sources) > maxSources || slices.Contains(p.Sources, "") {
		return s, errors.New("not a redrive allow policy")
	}
	s.Allow.Permission = p.Permission
	copy(s.Allow.Sources[:], p.Sources)
	return s, nil
}

// policies are the attributes of both policies, as they are shown.
func (s Settings) policies() map[string]string {
	out := map[string]string{}
	if s.DeadLetters != "" {
		out["RedrivePolicy"] = `{"deadLetterTargetArn":"` + ARN(s.DeadLetters) + `","maxReceiveCount":` + strconv.Itoa(s.MaxReceives) + `}`
	}
	if s.Allow.Permission != "" {
		sources := slices.DeleteFunc(slices.Clone(s.Allow.Sources[:]), func(arn string) bool { return arn == "" })
		policy, _ := json.Marshal(allowPolicy{s.Allow.Permission, sources}) // only strings
		out["RedriveAllowPolicy"] = string(policy)
	}
	return out
}
