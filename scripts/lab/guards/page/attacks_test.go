package page_test

import (
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/console/attack"
)

func (s *scene) attack(name string) {
	s.t.Helper()
	attacks()[name](s)
}

// attacks are those that the guards need, as package attack describes them.
func attacks() map[string]func(*scene) {
	return map[string]func(*scene){
		"post":                   func(s *scene) { s.post(1, card) },
		"conflict":               (*scene).conflict,
		"lose-stripe-before":     (*scene).loseConfirm,
		"stripe-down":            (*scene).stripeDown,
		attack.KillAndWait:       (*scene).killAndWait,
		attack.LoseBindAndWait:   (*scene).loseBindAndWait,
		attack.LoseFinish:        (*scene).loseFinish,
		attack.KillAfterFinish:   (*scene).killAfterFinish,
		attack.AgainAndKill:      (*scene).againAndKill,
		attack.BankTakesDays:     func(s *scene) { s.post(1, bankTransfer) },
		attack.MalformedUnparked: (*scene).malformedUnparked,
	}
}

func (s *scene) conflict() {
	s.post(1, card)
	s.post(11, card)
}

func (s *scene) loseConfirm() {
	s.Stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, On: stripetest.Confirm})
	s.post(1, card)
}

func (s *scene) stripeDown() {
	s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
	s.post(1, card)
	s.delivered()
	s.Stripe.Machine((*stripetest.Machine).Heal)
}

// keysExpire is longer than Stripe keeps idempotency keys.
const keysExpire = 25 * time.Hour

func (s *scene) killAndWait() {
	s.onYes(stripetest.Confirm, s.kill)
	s.post(1, card)
	s.delivered()
	s.Advance(keysExpire)
}

func (s *scene) loseBindAndWait() {
	s.loseWrites("SET intentId = :intent")
	s.post(1, card)
	s.delivered()
	s.Proxy.Heal()
	s.Advance(keysExpire)
}

func (s *scene) loseFinish() {
	s.loseWrites("SET #status = :to")
	s.post(1, card)
	s.delivered()
	s.Proxy.Heal()
}

// loseWrites loses the requests of DynamoDB with an expression.
func (s *scene) loseWrites(expression string) {
	s.Proxy.Fail(dynamodbtest.Fault{
		Kind: dynamodbtest.LoseBefore, Match: func(body []byte) bool { return strings.Contains(string(body), expression) },
	})
}

// killAfterFinish kills the instance after the second transaction: the first one claims
// the order and reserves its goods.
func (s *scene) killAfterFinish() {
	var transactions atomic.Int64
	s.Proxy.After(func(c dynamodbtest.Call) {
		if c.Operation == "TransactWriteItems" && transactions.Add(1) == 2 {
			s.kill()
		}
	})
	s.post(1, card)
}

func (s *scene) againAndKill() {
	held := make(chan struct{})
	s.onYes(stripetest.Create, func() {
		close(held)
		s.delivered()
		s.kill()
	})
	s.post(1, card)
	<-held
	s.deliverAgain()
}

func (s *scene) malformedUnparked() {
	s.SQS.Fail("SendMessage", 100, "ServiceUnavailable")
	s.postBody(`{"orderId":"` + id + `"}`)
	s.delivered()
	s.SQS.Heal()
}
