# The Stripe key passes through Terraform and stays nowhere: the variable is ephemeral and the argument write-only, so neither
# state nor plan holds it. The function is given the ARN and reads the key when it starts.
resource "aws_secretsmanager_secret" "stripe" {
  name                    = "${local.scope}/stripe-secret-key"
  description             = "Stripe key of ${local.scope}. Written by Terraform when stripe_secret_version is raised."
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = 7
}

resource "aws_secretsmanager_secret_version" "stripe" {
  secret_id                = aws_secretsmanager_secret.stripe.id
  secret_string_wo         = var.stripe_secret_key
  secret_string_wo_version = var.stripe_secret_version
}

# The webhook's signing secret comes here, in the same way, with functions/webhook.
