// Package secretsmanager reads one secret when a function starts. It knows nothing of what the secret is for.
package secretsmanager

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Read returns the current text of the secret with this ARN. The function needs secretsmanager:GetSecretValue on it.
// It asks once in a process's life, so a rotated secret is used from the next cold start on; keep the old one valid
// until then (docs.aws.amazon.com/secretsmanager, "Rotation strategy").
func Read(ctx context.Context, cfg aws.Config, arn string) (string, error) {
	out, err := secretsmanager.NewFromConfig(cfg).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", arn, err)
	}
	if aws.ToString(out.SecretString) == "" {
		return "", fmt.Errorf("read secret %s: %w", arn, errNoText)
	}
	return *out.SecretString, nil
}

var errNoText = errors.New("it holds no text")
