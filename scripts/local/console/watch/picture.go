// Package watch makes a picture of a running local system: it turns what the doubles and
// the function's host observe into orders with a place, a step and a timeline, and sends
// each change to those who follow. It changes nothing in the system, and knows neither
// HTTP nor pages. Nothing personal and no key is in what it returns.
package watch

// Picture is what a follower sees. No list is nil.
type Picture struct {
	Ahead     string     `json:"ahead"` // the clocks of the queue and of Stripe, such as "25 h"; "" if they are right
	Queue     Queue      `json:"queue"`
	Instances []Instance `json:"instances"`
	Orders    []Order    `json:"orders"` // the latest, and those that break an invariant
	Totals    Totals     `json:"totals"`
	Lights    []Light    `json:"lights"`
	Log       []Line     `json:"log"` // the latest, oldest first
	Dead      []Dead     `json:"dead"`
	Faults    []Fault    `json:"faults"`
	Control   Control    `json:"control"`
}

// Queue is how many messages of the order queue are in each state.
type Queue struct {
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
}

// Instance is a process of the order function.
type Instance struct {
	N       int    `json:"n"`     // 1 for the first process
	State   State  `json:"state"` // what it does
	Version string `json:"version"`
	Broken  string `json:"broken,omitempty"` // the guard that its program lacks
	Work    []Work `json:"work,omitempty"`   // of the running invocation
}

// State is what an instance does, or how it ended.
type State string

// The states of instances. The last three are shown for a few seconds.
const (
	Idle     State = "idle"
	Working  State = "working"
	Frozen   State = "frozen"
	Killed   State = "killed"
	TimedOut State = "timed_out"
	Ended    State = "ended" // of an older version, or by itself
)

// Work is an order that an instance processes.
type Work struct {
	Order string `json:"order"`
	Step  Step   `json:"step"` // the latest one
}

// Step is a step of an order's protocol, see docs/design.md.
type Step string

// The steps in their usual order. Find, Read and Release are not part of every attempt.
const (
	Claim   Step = "claim"
	Find    Step = "find"
	Prepare Step = "prepare"
	Bind    Step = "bind"
	Read    Step = "read"
	Confirm Step = "confirm"
	Finish  Step = "finish"
	Release Step = "release"
	Park    Step = "park"
)

// Place is where an order is in the picture.
type Place string

// The places, from left to right.
const (
	InQueue    Place = "queue"
	InFunction Place = "function"
	AtTable    Place = "table"
	AtStripe   Place = "stripe"
	Settled    Place = "settled" // acknowledged: nothing is left to do for this message
	DeadLetter Place = "dead"
)

// Order is one line of the picture.
type Order struct {
	ID         string   `json:"id"`
	N          int      `json:"n"` // 1 for the first order that was seen
	Amount     string   `json:"amount,omitempty"`
	Place      Place    `json:"place"`
	Message    string   `json:"message"`             // waiting, in_flight, acknowledged, parked
	VisibleAt  int64    `json:"visibleAt,omitempty"` // when a hidden message returns, in milliseconds by this machine's clock
	Step       Step     `json:"step,omitempty"`      // the latest of the running attempt
	Status     string   `json:"status,omitempty"`    // of the row; "" without a row
	Attempt    int      `json:"attempt,omitempty"`
	LeaseUntil int64    `json:"leaseUntil,omitempty"` // likewise; 0 if the row is not leased
	Owner      string   `json:"owner,omitempty"`      // the lease's fencing token, shortened
	Intent     string   `json:"intent,omitempty"`     // bound to the row
	Stripe     string   `json:"stripe,omitempty"`     // status of its latest intent at Stripe
	Charges    int      `json:"charges"`              // in Stripe's ledger
	Deliveries int      `json:"deliveries"`
	Duplicates int      `json:"duplicates,omitempty"` // deliveries of settled orders, which charged nobody
	Events     int      `json:"events,omitempty"`     // on the bus
	Webhooks   int      `json:"webhooks,omitempty"`   // that Stripe delivered
	Mails      int      `json:"mails,omitempty"`
	Reason     string   `json:"reason,omitempty"` // why its message is a dead letter
	Note       string   `json:"note,omitempty"`   // what happened to it last, in words
	Bad        []string `json:"bad,omitempty"`    // the invariants that it breaks, in words
	Entries    int      `json:"entries"`          // of its timeline
}

// Totals are counted since the start.
type Totals struct {
	Orders     int   `json:"orders"`
	Deliveries int   `json:"deliveries"`
	Duplicates int   `json:"duplicates"` // deliveries that charged nobody because the order was settled
	Charges    int   `json:"charges"`    // that succeeded
	Twice      int   `json:"twice"`      // orders with more than one of them
	Kills      int   `json:"kills"`
	Events     int   `json:"events"`
	Webhooks   int   `json:"webhooks"`
	Mails      int   `json:"mails"`
	Rows       []Row `json:"rows"` // of the table, by status
}

// Row is how many orders have a status.
type Row struct {
	Status string `json:"status"`
	Orders int    `json:"orders"`
}

// Light is an invariant of docs/design.md.
type Light struct {
	ID     string   `json:"id"`
	Claim  string   `json:"claim"`
	Broken []string `json:"broken,omitempty"` // where; the light is red if there is one
	Orders int      `json:"orders"`           // that were checked
}

// Tone is how a line of the log is shown.
type Tone string

// The tones.
const (
	Plain  Tone = "plain"
	Attack Tone = "attack" // somebody did something to the system
	Good   Tone = "good"
	Bad    Tone = "bad"
)

// Line is a sentence about what happened.
type Line struct {
	N    int    `json:"n"`  // 1 for the first line
	At   int64  `json:"at"` // milliseconds since 1970, by this machine's clock
	Tone Tone   `json:"tone"`
	Text string `json:"text"`
}

// Dead is a message in the dead-letter queue.
type Dead struct {
	Message string `json:"message"`
	Order   string `json:"order,omitempty"` // "" if the body does not name one
	Reason  string `json:"reason"`
}

// Fault is something that goes wrong now.
type Fault struct {
	Text  string `json:"text"`
	Until int64  `json:"until,omitempty"` // 0: the next matching call
}

// Control is what the visitor has set.
type Control struct {
	Version   string `json:"version"`            // of the deployed program
	Guard     string `json:"guard,omitempty"`    // that the deployed program lacks
	Missing   string `json:"-"`                  // likewise, in words
	Building  string `json:"building,omitempty"` // the guard without which a program is being compiled
	Storm     bool   `json:"storm"`
	Seed      uint64 `json:"seed,omitempty"`   // of the storm
	Posted    int    `json:"posted,omitempty"` // by the storm
	SlowSteps bool   `json:"slowSteps"`        // each call of an order that the visitor posts takes a moment
}

// Timeline is an order with everything that happened to it, oldest first.
type Timeline struct {
	Order   Order   `json:"order"`
	Entries []Entry `json:"entries"`
	Dropped int     `json:"dropped,omitempty"` // older entries that were dropped
}

// Kind is how an entry of a timeline is drawn.
type Kind string

// The kinds.
const (
	Message Kind = "message" // from one participant to another
	Call    Kind = "call"    // with an answer
	Refused Kind = "refused" // the answer is an error, or a condition failed
	Lost    Kind = "lost"    // no answer, or the request never arrived
	Death   Kind = "death"   // of From, an instance
	Note    Kind = "note"    // over From
)

// Participants of timelines, beside the functions: "Function 3" is instance 3 of the
// order function.
const (
	SQS         = "SQS"
	DynamoDB    = "DynamoDB"
	Stripe      = "Stripe"
	EventBridge = "EventBridge"
	Others      = "Other functions" // of webhooks, of the schedule, of receipts; and the operator
	Mailbox     = "Mailbox"
	DeadLetters = "Dead letters"
	You         = "You"
)

// Entry is one thing that happened to an order.
type Entry struct {
	At       int64  `json:"at"` // milliseconds since 1970, by this machine's clock
	Kind     Kind   `json:"kind"`
	From     string `json:"from"`
	To       string `json:"to,omitempty"`
	Step     Step   `json:"step,omitempty"`
	Text     string `json:"text"`               // such as "confirm pi_000001"
	Answer   string `json:"answer,omitempty"`   // such as "200 succeeded"
	Request  string `json:"request,omitempty"`  // redacted, in lines
	Response string `json:"response,omitempty"` // likewise
}
