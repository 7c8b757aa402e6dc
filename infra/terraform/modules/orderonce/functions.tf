# A part of the module is a function with what belongs to it: its queues, its alarms, its
# environment and the statements of its role. Each has a file named after it. To add one,
# write its file and name it in the three maps below.
locals {
  # What is known before anything is created.
  parts = { for name, part in {
    order     = local.order
    refund    = local.refund
    webhook   = local.webhook
    reconcile = local.reconcile
    publish   = local.publish
    intake    = local.intake
    receipt   = local.receipt
    paid      = local.paid # an example without a function
  } : name => part if try(part.enabled, true) }

  # Names and ARNs of what was created. Separate from the parts to avoid a cycle: queues and
  # tables depend on the roles, so that a role is allowed to use a key before they do.
  environments = {
    order     = local.order_environment
    refund    = local.refund_environment
    webhook   = local.webhook_environment
    reconcile = local.reconcile_environment
    publish   = local.publish_environment
    intake    = local.intake_environment
    receipt   = local.receipt_environment
  }

  # By Sid. Every role has those of iam.tf as well.
  statements = {
    order     = local.order_statements
    refund    = local.refund_statements
    webhook   = local.webhook_statements
    reconcile = local.reconcile_statements
    publish   = local.publish_statements
    intake    = local.intake_statements
    receipt   = local.receipt_statements
  }

  # A part's function has a description, a timeout, the services through which it may use a
  # KMS key, and unless they are 256 MB and none, its memory and reserved concurrency. A new
  # account has a quota of 10 concurrent executions, of which nothing can be reserved.
  functions = { for name, part in local.parts : name => part.function if can(part.function) }

  # The path of each zip, or its key in package_s3, and its SHA-256 in hexadecimal digits, "" without one.
  zip_folder = var.package_s3 == null ? "${coalesce(var.package_dir, "package_dir is not set")}/" : var.package_s3.prefix
  zips       = { for name in keys(local.functions) : name => "${local.zip_folder}${name}.zip" }
  zip_sha256 = { for name, zip in local.zips : name => (
    var.package_s3 == null ? fileexists(zip) ? filesha256(zip) : "" :
    try(regex("(?m)^([0-9a-f]{64})  ${name}\\.zip$", var.package_s3.checksums)[0], "")
  ) }

  # Lambda reports it in base64: three hexadecimal digits are two characters of it.
  base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  s3_base64sha256 = { for name, sha256 in local.zip_sha256 : name => sha256 == "" ? null : format("%.43s=", join("", [
    for digits in regexall("...", "${sha256}00") : join("", [
      for six in [floor(parseint(digits, 16) / 64), parseint(digits, 16) % 64] : substr(local.base64, six, 1)
    ])
  ])) }

  # The processor of the zips, from the file beside them if there is one.
  goarch     = { arm64 = "arm64", x86_64 = "amd64" }[var.architecture]
  zip_goarch = try(trimspace(file("${local.zip_folder}GOARCH")), local.goarch)
}

resource "aws_lambda_function" "functions" {
  for_each = local.functions

  function_name = "${local.prefix}-${each.key}"
  # The description identifies the zip of each version: compare with
  # build/package/SHA256SUMS. It contains the versions of the function's secrets, so that
  # a rotation publishes a new version of the function after the secret is written. Its
  # new execution environments read the new secret.
  description = join(" ", concat(
    ["${each.value.description}."],
    [for name, key in local.stripe_keys : key.label if name == each.key], # who calls Stripe
    each.key == "webhook" ? ["Webhook secret ${local.webhook_secret_version}."] : [],
    ["Zip ${local.zip_sha256[each.key]}"],
  ))
  role          = aws_iam_role.functions[each.key].arn
  runtime       = "provided.al2023"
  architectures = [var.architecture]
  handler       = "bootstrap"
  filename      = var.package_s3 == null ? local.zips[each.key] : null
  s3_bucket     = try(var.package_s3.bucket, null)
  s3_key        = var.package_s3 == null ? null : local.zips[each.key]
  source_code_hash = (
    var.package_s3 == null ? try(filebase64sha256(local.zips[each.key]), null) : local.s3_base64sha256[each.key]
  )
  publish                        = true
  timeout                        = each.value.timeout
  memory_size                    = try(each.value.memory_size, 256)
  reserved_concurrent_executions = try(each.value.reserved, null)

  environment {
    # Go reads a file of authorities, and then every file of /etc/ssl/certs and /etc/pki/tls/certs, which have
    # the same authorities again (crypto/x509). A cold start that reads them once is ready 20 to 40 ms sooner.
    variables = merge(local.environments[each.key], { SSL_CERT_DIR = "/nowhere" })
  }

  logging_config {
    log_format            = "JSON"
    log_group             = aws_cloudwatch_log_group.functions[each.key].name
    application_log_level = "INFO" # a stricter level drops the metrics: they have no level and count as INFO
    system_log_level      = "WARN"
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  lifecycle {
    precondition {
      condition     = local.zip_sha256[each.key] != "" || var.package_s3 != null
      error_message = <<-EOT
        ${local.zips[each.key]}: no such file. Run make package in the root of the clone, or set package_dir to the
        folder with the zips. Or set package_s3 to the bucket that has those of a release.
      EOT
    }

    precondition {
      condition     = local.zip_sha256[each.key] != "" || var.package_s3 == null
      error_message = "package_s3: checksums has no line for ${each.key}.zip, set it to the SHA256SUMS of the zips"
    }

    precondition {
      condition     = local.zip_goarch == local.goarch
      error_message = <<-EOT
        ${local.zips[each.key]}: built for another processor than architecture = "${var.architecture}", run make package
        GOARCH=${local.goarch} in the root of the clone first
      EOT
    }
  }
}

resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = "live"
  description      = "The deployed version"
  function_name    = aws_lambda_function.functions[each.key].function_name
  function_version = aws_lambda_function.functions[each.key].version
}

resource "aws_cloudwatch_log_group" "functions" {
  for_each = local.functions

  name              = "/aws/lambda/${local.prefix}-${each.key}"
  retention_in_days = var.log_retention_days
}
